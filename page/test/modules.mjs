// SPDX-License-Identifier: Apache-2.0
// Modules of the page for tests without a browser.
import { build } from 'esbuild';

export async function load(...names) {
  const contents = names.map((name) => `export * from '../src/${name}';`).join('\n');
  const stdin = { contents, resolveDir: new URL('.', import.meta.url).pathname, loader: 'ts' };
  const result = await build({ stdin, bundle: true, write: false, format: 'esm', logLevel: 'warning' });
  return import(`data:text/javascript;base64,${Buffer.from(result.outputFiles[0].contents).toString('base64')}`);
}

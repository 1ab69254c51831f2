// SPDX-License-Identifier: Apache-2.0
// Builds the page: `node build.mjs [FOLDER]`, dist by default.
//   index.html   the page with its script and styles inside
//   policy.txt   the Content-Security-Policy that allows just these, by their hashes
//   licenses.txt those of the packages within
//   *.js         parts that the page loads when they are needed; pdf.worker.js is the worker of pdf.js
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';

const kMostBytes = 200_000;
const kMostPdfBytes = 600_000; // Of both files together, compressed.
const folder = process.argv[2] ?? 'dist';

async function bundled(entry) {
  const result = await build({
    entryPoints: [entry],
    outdir: folder,
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: ['chrome123', 'safari17.5', 'firefox121'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    logLevel: 'warning',
    absWorkingDir: import.meta.dirname ?? new URL('.', import.meta.url).pathname,
  });
  const text = (end) => result.outputFiles.find((file) => file.path.endsWith(end))?.text.trim() ?? '';
  return { script: text('.js'), style: text('.css') };
}

function sourceHash(text) {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

function policy(script, style) {
  return [
    "default-src 'none'",
    `script-src ${sourceHash(script)} 'self'`,
    `style-src ${sourceHash(style)}`,
    "connect-src 'self'",
    'img-src data: blob:',
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

function licenses() {
  const { dependencies } = JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8'));
  return Object.entries(dependencies).map(([name, version]) => {
    const folder = new URL(`node_modules/${name}/`, import.meta.url);
    const file = readdirSync(folder).find((one) => /^licen[cs]e(\.|$)/i.test(one));
    return `${name} ${version}\n\n${readFileSync(new URL(file, folder), 'utf8').trim()}\n`;
  }).join('\n\n');
}

function write(name, text) {
  writeFileSync(`${folder}/${name}`, text);
  console.log(`${name}: ${Buffer.byteLength(text)} bytes`);
}

mkdirSync(folder, { recursive: true });
const main = await bundled('src/main.tsx');
// An end tag within the script would end it.
const script = main.script.replaceAll('</script', '<\\/script');
const page = readFileSync(new URL('index.html', import.meta.url), 'utf8')
  .replace('</head>', () => `  <style>${main.style}</style>\n  </head>`)
  .replace('</body>', () => `  <script type="module">${script}</script>\n  </body>`);
if (Buffer.byteLength(page) > kMostBytes) {
  throw new Error(`the page has ${Buffer.byteLength(page)} bytes, expected at most ${kMostBytes}`);
}
write('index.html', page);
write('policy.txt', policy(script, main.style));
write('licenses.txt', licenses());
const parts = {};
for (const part of ['katex', 'highlight', 'pdf', 'pdf.worker']) {
  parts[part] = (await bundled(`src/parts/${part}.ts`)).script;
  write(`${part}.js`, parts[part]);
}
const pdfBytes = gzipSync(parts.pdf).length + gzipSync(parts['pdf.worker']).length;
if (pdfBytes > kMostPdfBytes) {
  throw new Error(`the readers of PDF have ${pdfBytes} bytes, expected at most ${kMostPdfBytes}`);
}

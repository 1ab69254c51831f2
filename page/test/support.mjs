// SPDX-License-Identifier: Apache-2.0
// A server with a scripted model, and a browser that looks at its page.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

export function browserPath() {
  const paths = [process.env.SAKER_CHROMIUM, '/usr/bin/chromium', '/usr/bin/google-chrome'];
  const found = paths.find((path) => path && existsSync(path));
  if (!found) {
    throw new Error('no Chromium: tools/setup.sh checks, or SAKER_CHROMIUM');
  }
  return found;
}

export async function startServer(script, args = []) {
  const folder = mkdtempSync(join(tmpdir(), 'saker-page-'));
  const path = join(folder, 'script.json');
  writeFileSync(path, JSON.stringify(script));
  const child = spawn(process.env.SAKER_FAKE_SERVER, [path, '0', ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const address = (await lines.next()).value;
  const stop = async () => {
    const exited = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await exited;
    rmSync(folder, { recursive: true });
  };
  return { address, stop };
}

export function launchBrowser() {
  return chromium.launch({ executablePath: browserPath(), args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
}

// A page in a profile of its own. `problems` has what it must not do: errors, requests elsewhere.
export async function openPage(browser, address, options = {}) {
  const context = await browser.newContext({ acceptDownloads: true, ...options });
  const page = await context.newPage();
  if (options.models) {
    await page.route('**/v1/models', options.models);
  }
  page.setDefaultTimeout(20_000);
  const problems = [];
  const expected = options.expects ?? /^$/;
  page.on('console', (message) => message.type() === 'error' && !expected.test(message.text()) && problems.push(message.text()));
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol.startsWith('http') && origin !== address) {
      problems.push(`request to ${request.url()}`);
    }
  });
  await page.goto(`${address}/${options.hash ?? ''}`);
  await page.getByRole('heading', { name: 'Saker' }).waitFor();
  return { page, context, problems };
}

export async function say(page, text) {
  await page.getByLabel('Message', { exact: true }).fill(text);
  await page.keyboard.press('Enter');
}

// The last answer, once it has ended.
export async function answered(page) {
  const last = page.getByRole('article', { name: 'Answer' }).last();
  await last.and(page.locator('[aria-busy="false"]')).waitFor();
  return last;
}

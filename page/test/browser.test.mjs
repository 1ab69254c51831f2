// SPDX-License-Identifier: Apache-2.0
// The page in Chromium: node --test test/browser.test.mjs
import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { answered, launchBrowser, openPage, say, startServer } from './support.mjs';

const script = [
  { when: 'markdown', events: [{ content: '# Title\n\nSome **bold** text, <img src=x onerror=alert(1)> and $x^2$.\n\n```python\ndef f():\n    return 1\n```\n' }] },
  { when: 'slow', events: [{ content: 'Begin. ' }, { sleep_ms: 150, repeat: 1, content: 'a ' }, { sleep_ms: 800, content: 'The end.' }] },
];

let server, browser, page, context, problems;

before(async () => {
  server = await startServer(script);
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await server?.stop();
});
beforeEach(async () => ({ page, context, problems } = await openPage(browser, server.address)));
afterEach(async () => {
  await context.close();
  assert.deepEqual(problems, []);
});

test('answers stream in, as Markdown that can do no harm', async () => {
  await say(page, 'markdown please');
  const answer = await answered(page);
  assert.equal(await answer.locator('h1').innerText(), 'Title');
  assert.equal(await answer.locator('strong', { hasText: 'bold' }).count(), 1);
  assert.equal(await answer.locator('img').count(), 0);
  await answer.locator('math msup').waitFor();
  await answer.locator('.hljs-keyword').first().waitFor();
});

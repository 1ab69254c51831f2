// SPDX-License-Identifier: Apache-2.0
// The page in Chromium: node --test test/browser.test.mjs
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { pdfFile } from './pdf.mjs';
import { answered, launchBrowser, openPage, say, startServer } from './support.mjs';

const call = { id: 'call_1', name: 'weather', arguments: '{"city": "Oslo"}' };
const markdown = '# Title\n\nSome **bold** text, <img src=x onerror=alert(1)> and $x^2$.\n\n```python\ndef f():\n    return 1\n```\n';
const script = [
  { when: 'markdown', events: [{ content: markdown }] },
  { when: 'slow', events: [{ content: 'Begin. ' }, { sleep_ms: 700, content: 'The end.' }] },
  { when: 'endless', events: [{ repeat: 200, sleep_ms: 10, content: 'on and ' }, { sleep_ms: 30_000 }] },
  { when: 'think', events: [{ reasoning: 'Let me see.' }, { content: 'It is so.' }] },
  { when: 'ponder', events: [{ reasoning: 'Hm. ' }, { sleep_ms: 5000, content: 'Late.' }] },
  { when: 'call', events: [{ call }] },
  { when: 'edit', events: [{ call: { id: 'call_2', name: 'apply_patch', arguments: '{"input": "a \\"line\\""}' } }] },
  { when: 'sunny', events: [{ content: 'Take a hat.' }] },
  { when: 'breaks', events: [{ content: 'a' }], fails: { code: 'internal', message: 'broken' } },
  { when: 'full', refuses: { code: 'capacity', message: 'the queue is full' } },
];

// Tests share a page, since a new one takes longer than most of them; each begins with a new chat.
let server, browser, page, problems, shared;

before(async () => {
  server = await startServer(script, ['', '{"adapter": "tuned"}']);
  browser = await launchBrowser();
  shared = await openPage(browser, server.address);
});
after(async () => {
  await browser?.close();
  await server?.stop();
});
beforeEach(async () => {
  ({ page, problems } = shared);
  await page.keyboard.press('Control+k');
  await page.getByRole('heading', { name: 'Saker' }).waitFor();
});
afterEach(async () => {
  if (page !== shared.page) {
    await page.context().close();
  }
  assert.deepEqual(problems.splice(0), []);
});

// A page of its own for this test.
async function open(options, address = server.address) {
  ({ page, problems } = await openPage(browser, address, options));
}

const button = (name, within = page) => within.getByRole('button', { name, exact: true });
const answers = () => page.getByRole('article', { name: 'Answer' });

async function more(turn, name) {
  await turn.getByText('More', { exact: true }).click();
  await button(name, turn).click();
}

async function sentBody() {
  await more(await answered(page), 'Inspect');
  const body = JSON.parse(await page.getByRole('dialog').getByLabel('Body').innerText());
  await page.keyboard.press('Escape');
  return body;
}

test('answers stream in, as Markdown that can do no harm', async () => {
  await say(page, 'markdown please');
  const answer = await answered(page);
  assert.equal(await answer.locator('h1').innerText(), 'Title');
  assert.equal(await answer.locator('strong', { hasText: 'bold' }).count(), 1);
  assert.equal(await answer.locator('img').count(), 0);
  await answer.locator('math msup').waitFor();
  await answer.locator('.hljs-keyword').first().waitFor();
  assert.match(await answer.locator('.numbers').innerText(), /prompt \d+ tokens \(0 cached\) · answer \d+ tokens/);
});

test('an answer can be stopped, and the next one asked for', async () => {
  await say(page, 'endless');
  await page.getByText('on and on and').waitFor();
  await button('Stop', page.locator('form.composer')).click();
  await (await answered(page)).getByText('Stopped.').waitFor();
  await say(page, 'Hello');
  assert.match(await (await answered(page)).innerText(), /Hello/);
});

test('a question is edited, an answer regenerated; both are branches', async () => {
  await say(page, 'First');
  await answered(page);
  await button('Edit', page.getByRole('article', { name: 'You' })).click();
  await page.getByLabel('Text', { exact: true }).fill('Second');
  await button('Send', page.locator('form.editor')).click();
  await page.getByText('2 / 2').waitFor();
  await button('Regenerate', await answered(page)).click();
  assert.equal(await page.getByText('2 / 2').count(), 2);
  await answered(page);
  await button('Previous version', page.getByRole('article', { name: 'You' })).click();
  assert.match(await (await answered(page)).locator('.markdown').innerText(), /First/);
});

test('thoughts are folded; "Answer now" asks again with a budget of them', async () => {
  await say(page, 'think');
  const answer = await answered(page);
  assert.equal(await answer.getByText('Let me see.').isVisible(), false);
  await answer.getByText(/Thoughts/).click();
  assert.equal(await answer.getByText('Let me see.').isVisible(), true);
  await button('New chat').click();
  await say(page, 'ponder');
  await button('Answer now').click();
  await page.getByText('2 / 2').waitFor();
  await button('Stop', page.locator('form.composer')).click();
  assert.ok((await sentBody()).reasoning_budget_tokens >= 1);
});

test('calls of tools are shown and get results', async () => {
  await say(page, 'call it');
  const answer = await answered(page);
  await answer.getByText('"city": "Oslo"').waitFor();
  await answer.getByLabel('Result').fill('sunny');
  await button('Send results', answer).click();
  await page.getByText('Take a hat.').waitFor();
  const { messages } = await sentBody();
  assert.deepEqual(messages.map((one) => one.role), ['user', 'assistant', 'tool']);
  assert.equal(messages[2].tool_call_id, 'call_1');
});

test('calls of custom tools are texts', async () => {
  await page.keyboard.press('Control+,');
  const tools = page.getByRole('dialog', { name: 'Settings' }).getByLabel('Tools, a JSON list as in chat completions');
  await tools.fill('[{"type": "custom", "custom": {"name": "apply_patch"}}]');
  await page.keyboard.press('Escape');
  await say(page, 'edit it');
  const answer = await answered(page);
  await answer.getByText('a "line"', { exact: true }).waitFor();
  await answer.getByLabel('Result').fill('sunny');
  await button('Send results', answer).click();
  await page.getByText('Take a hat.').waitFor();
  const { messages } = await sentBody();
  assert.deepEqual(messages[1].tool_calls, [{ id: 'call_2', type: 'custom', custom: { name: 'apply_patch', input: 'a "line"' } }]);
  await page.keyboard.press('Control+,');
  await tools.fill('');
  await page.keyboard.press('Escape');
});

test('tokens show their alternatives, and an answer branches off at one', async () => {
  await open({});
  await say(page, 'Hello there');
  const answer = await answered(page);
  await button('Tokens', answer).click();
  await answer.getByLabel('Tokens', { exact: true }).press('End');
  await answer.getByText(/Token \d+ of \d+:.*60\.7 %/).waitFor();
  await answer.locator('.alternatives li button:enabled').nth(1).click();
  await page.getByText('2 / 2').waitFor();
  const body = await sentBody();
  assert.equal(body.continue_final_message, true);
  assert.ok(body.messages.at(-1).content.startsWith('Hello'));
});

test('an answer is compared with the one of an adapter, token by token', async () => {
  await say(page, 'Hello there');
  await more(await answered(page), 'Compare');
  const dialog = page.getByRole('dialog', { name: 'Compare' });
  await dialog.getByRole('region', { name: 'Answer of tuned' }).getByText('Hello there').waitFor();
  await dialog.locator('.token').first().click();
  await dialog.getByText('60.7 % in fake, 36.8 % in tuned').waitFor();
});

test('settings, presets and the system prompt reach the request', async () => {
  await open({});
  await page.keyboard.press('Control+,');
  const dialog = page.getByRole('dialog', { name: 'Settings' });
  await dialog.getByLabel('Temperature').fill('0.5');
  await dialog.getByLabel('System prompt of this chat').fill('Be brief.');
  await dialog.getByLabel('Name of a preset').fill('Calm');
  await button('Save preset', dialog).click();
  await button("Server's defaults", dialog).click();
  await dialog.getByLabel('Load a preset').selectOption('Calm');
  await page.keyboard.press('Escape');
  await page.getByLabel('Model', { exact: true }).selectOption('tuned');
  await say(page, 'Hello');
  const body = await sentBody();
  assert.equal(body.temperature, 0.5);
  assert.equal(body.model, 'tuned');
  assert.deepEqual(body.messages[0], { role: 'system', content: 'Be brief.' });
  assert.equal('top_p' in body, false);
});

test('files become part of the question; other files are refused', async () => {
  const chooser = page.locator('form.composer input[type=file]');
  await chooser.setInputFiles({ name: 'a.bin', mimeType: '', buffer: Buffer.from([255, 254, 0]) });
  await page.getByText('a.bin is no text in UTF-8').waitFor();
  await chooser.setInputFiles({ name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('one two') });
  await page.getByRole('list', { name: 'Attached files' }).getByText('notes.txt').waitFor();
  await say(page, 'What is this?');
  assert.equal((await sentBody()).messages[0].content, 'File notes.txt:\n\none two\n\nWhat is this?');
});

test('PDF files become their texts; those without are refused', async () => {
  const chooser = page.locator('form.composer input[type=file]');
  const files = page.getByRole('list', { name: 'Attached files' });
  const attach = (name, buffer) => chooser.setInputFiles({ name, mimeType: 'application/pdf', buffer });
  const loaded = [];
  page.on('request', (request) => loaded.push(new URL(request.url()).pathname));
  await attach('broken.pdf', Buffer.from('%PDF-1.7 and no more'));
  await page.getByText(/^broken.pdf is no PDF file that can be read: /).waitFor();
  await attach('scan.pdf', pdfFile([[]]));
  await page.getByText('scan.pdf has no text: its pages may be pictures').waitFor();
  await attach('paper.pdf', pdfFile([['One line', 'and another'], ['Page two']]));
  await files.getByText('paper.pdf').waitFor();
  assert.deepEqual(loaded.slice(0, 2), ['/page/pdf.js', '/page/pdf.worker.js']);
  await say(page, 'What is this?');
  assert.equal((await sentBody()).messages[0].content, 'File paper.pdf:\n\nOne line\nand another\n\nPage two\n\nWhat is this?');
});

test('chats stay, are found, exported and imported', async () => {
  await say(page, 'Remember me');
  await answered(page);
  await page.reload();
  await button('Remember me').click();
  await answered(page);
  const download = page.waitForEvent('download');
  await button('Export all').click();
  const file = await (await download).path();
  assert.equal(JSON.parse(readFileSync(file, 'utf8')).chats[0].title, 'Remember me');
  page.once('dialog', (dialog) => dialog.accept());
  await button('Delete Remember me').click();
  await button('Remember me').waitFor({ state: 'detached' });
  await page.locator('#import').setInputFiles(file);
  await button('Remember me').waitFor();
  await page.getByLabel('Search chats').fill('nothing like it');
  assert.equal(await button('Remember me').count(), 0);
  await page.getByLabel('Search chats').fill('');
  await page.locator('#import').setInputFiles({ name: 'x.json', mimeType: '', buffer: Buffer.from('{}') });
  await page.getByText(/expected a file with/).waitFor();
});

test('an answer survives a reload in the middle of it', async () => {
  await say(page, 'slow');
  await page.getByText('Begin.').waitFor();
  await page.reload();
  const answer = await answered(page);
  assert.equal(await answer.locator('.markdown').innerText(), 'Begin. The end.');
  assert.equal(await answers().count(), 1);
});

test('what is said while chats are still loaded stays', async () => {
  let loaded;
  const said = new Promise((resolve) => (loaded = resolve));
  await open({ models: (route) => said.then(() => route.continue()) });
  await say(page, 'slow');
  await page.getByText('Begin.').waitFor();
  const listed = page.waitForResponse('**/v1/models');
  loaded();
  await listed;
  await page.waitForTimeout(100);
  assert.equal(await (await answered(page)).locator('.markdown').innerText(), 'Begin. The end.');
});

test('errors are shown, and the chat goes on', async () => {
  await open({ expects: /429/ });
  await say(page, 'breaks');
  await (await answered(page)).getByRole('alert').getByText('broken').waitFor();
  await say(page, 'full');
  await (await answered(page)).getByRole('alert').getByText('the queue is full').waitFor();
});

test('the server is looked at', async () => {
  await say(page, 'Hello');
  await answered(page);
  await button('Server').click();
  const row = page.getByRole('dialog', { name: 'Server' }).getByRole('row', { name: /Tokens of answers [1-9]/ });
  await row.waitFor();
});

test('keys are asked for', async () => {
  const closed = await startServer(script, ['secret']);
  try {
    await open({ expects: /401/ }, closed.address);
    await page.getByLabel('API key').fill('secret');
    await button('Use').click();
    await say(page, 'Hello');
    assert.match(await (await answered(page)).innerText(), /Hello/);
  } finally {
    await closed.stop();
  }
});

test('a phone has room for it, the keyboard reaches all, and colours follow', async () => {
  await open({ viewport: { width: 320, height: 568 }, colorScheme: 'dark' });
  await say(page, 'markdown please');
  await answered(page);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 320);
  await button('Chats').click();
  await button('markdown please').click();
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await back();
  await button('Colours: System').click();
  assert.notEqual(await back(), dark);
  const unnamed = await page.evaluate(() =>
    [...document.querySelectorAll('button, input:not([hidden]), select, textarea')].filter(
      (one) => !one.textContent?.trim() && !one.ariaLabel && !one.labels?.length,
    ).length,
  );
  assert.equal(unnamed, 0);
  const isReady = await page.evaluate(async () => {
    document.dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true }));
    await null; // No key can come before this.
    return document.activeElement?.id === 'input';
  });
  assert.ok(isReady, 'the first keys after Ctrl+K would be lost');
  await page.keyboard.type('Hello');
  await page.keyboard.press('Enter');
  assert.match(await (await answered(page)).innerText(), /Hello/);
});

test('the page is one file that loads nothing from elsewhere', async () => {
  const response = await page.request.get(`${server.address}/`, { headers: { Accept: 'text/html' } });
  assert.ok((await response.body()).length <= 200_000);
  assert.match(response.headers()['content-security-policy'], /default-src 'none'.*connect-src 'self'/);
  const probe = await page.request.get(`${server.address}/`, { headers: { Accept: '*/*' } });
  assert.equal(await probe.text(), 'Saker is running\n');
});

// SPDX-License-Identifier: Apache-2.0
// Pictures for docs/page.md: node test/pictures.mjs FOLDER. SAKER_FAKE_SERVER answers the first and the
// third; SAKER_PROGRAM with the bundled model the second.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { answered, launchBrowser, openPage, say, startServer } from './support.mjs';

const folder = process.argv[2];
const text =
  'The roots of a quadratic $ax^2 + bx + c = 0$ are\n\n$$x = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}$$\n\nIn Python:\n\n' +
  '```python\nfrom cmath import sqrt\n\ndef roots(a, b, c):\n    # Two, which may be equal.\n    d = sqrt(b * b - 4 * a * c)\n    return (-b + d) / (2 * a), (-b - d) / (2 * a)\n```\n';
const script = [{ when: 'quadratic', events: [{ reasoning: 'They want the formula and a program.' }, { content: text }] }];

const browser = await launchBrowser();
const server = await startServer(script);
const light = await openPage(browser, server.address, { viewport: { width: 1000, height: 760 }, colorScheme: 'light' });
await say(light.page, 'How do I solve a quadratic equation?');
await (await answered(light.page)).locator('math mfrac').waitFor();
await light.page.screenshot({ path: `${folder}/page-light.png` });

const phone = await openPage(browser, server.address, { viewport: { width: 390, height: 760 }, colorScheme: 'light' });
await say(phone.page, 'How do I solve a quadratic equation?');
await (await answered(phone.page)).locator('math mfrac').waitFor();
await phone.page.screenshot({ path: `${folder}/page-phone.png` });

const child = spawn(process.env.SAKER_PROGRAM, ['serve', '--port', '18471'], { stdio: ['ignore', 'ignore', 'pipe'] });
for await (const line of createInterface({ input: child.stderr })) {
  if (line.includes('http://')) {
    break;
  }
}
const dark = await openPage(browser, 'http://127.0.0.1:18471', { viewport: { width: 1000, height: 760 }, colorScheme: 'dark' });
await say(dark.page, 'Tell me a story about a cat.');
const answer = await answered(dark.page);
await answer.getByRole('button', { name: 'Tokens' }).click();
await answer.locator('.token').nth(8).click();
await dark.page.screenshot({ path: `${folder}/page-tokens-dark.png` });
child.kill('SIGTERM');
await once(child, 'exit');
await browser.close();
await server.stop();

// SPDX-License-Identifier: Apache-2.0
// Trees, files and parsers, without a browser: node --test test/unit.test.mjs
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { load } from './modules.mjs';

const page = await load('model/tree', 'model/files', 'model/request', 'model/settings', 'model/metrics', 'api/chat');

function turn(id, parent, role, created, more = {}) {
  return { id, parent, role, content: `text of ${id}`, created, ...more };
}

// q1 has the answers a1 and a2; a2 has the question q2.
function tree() {
  const turns = [
    turn('q1', null, 'user', 1),
    turn('a1', 'q1', 'assistant', 2, { status: 'done' }),
    turn('a2', 'q1', 'assistant', 3, { status: 'done' }),
    turn('q2', 'a2', 'user', 4),
  ];
  return turns.reduce(page.addTurn, page.newChat('Be brief.', 0));
}

const ids = (turns) => turns.map((one) => one.id);

test('a chat shows one path through its tree', () => {
  const chat = tree();
  assert.equal(chat.title, 'text of q1');
  assert.deepEqual(ids(page.pathTo(chat)), ['q1', 'a2', 'q2']);
  const other = page.showSibling(chat, 'a2', -1);
  assert.deepEqual(ids(page.pathTo(other)), ['q1', 'a1']);
  assert.deepEqual(ids(page.pathTo(page.showSibling(other, 'a1', 1))), ['q1', 'a2', 'q2']);
  assert.equal(page.showSibling(other, 'a1', -1), other);
  assert.deepEqual(ids(page.siblings(chat, 'a1')), ['a1', 'a2']);
});

test('a removed turn takes what is below it', () => {
  const chat = page.removeTurn(tree(), 'a2');
  assert.deepEqual(Object.keys(chat.turns).sort(), ['a1', 'q1']);
  assert.equal(chat.leaf, 'a1');
  assert.equal(page.removeTurn(chat, 'q1').leaf, null);
});

test('a copy has the turns up to one', () => {
  const copy = page.copyUpTo(tree(), 'a1', 9);
  assert.deepEqual(Object.keys(copy.turns), ['q1', 'a1']);
  assert.equal(copy.leaf, 'a1');
});

test('chats are found by their texts', () => {
  assert.equal(page.search([tree()], 'TEXT OF Q2').length, 1);
  assert.equal(page.search([tree()], 'nothing').length, 0);
});

test('a file gives back the chats that it was made of', () => {
  const chat = tree();
  const [read] = page.chatsFromJson(page.chatsToJson([chat]));
  assert.equal(JSON.stringify(page.pathTo(read)), JSON.stringify(page.pathTo(chat)));
  assert.equal(read.system, 'Be brief.');
});

test('broken files are refused with a line', () => {
  const good = JSON.parse(page.chatsToJson([tree()]));
  const broken = (change) => {
    const copy = structuredClone(good);
    change(copy);
    return () => page.chatsFromJson(JSON.stringify(copy));
  };
  assert.throws(() => page.chatsFromJson('{'), /no JSON/);
  assert.throws(() => page.chatsFromJson('null'), /expected a file/);
  assert.throws(broken((file) => (file.format = 'x')), /expected a file/);
  assert.throws(broken((file) => (file.chats[0].leaf = 'constructor')), /lacks/);
  assert.throws(broken((file) => (file.chats[0].turns.q1.content = 5)), /broken turn: q1/);
  assert.throws(broken((file) => (file.chats[0].turns.q1.parent = 'no')), /broken turn: q1/);
  assert.throws(broken((file) => (file.chats[0].turns.q1.parent = 'q2')), /circle/);
  const read = broken((file) => Object.assign(file.chats[0].turns.a1, { tokens: 5, calls: [{}], status: 'running' }))();
  assert.equal(read[0].turns.a1.tokens, undefined);
  assert.equal(read[0].turns.a1.calls, undefined);
  assert.equal(read[0].turns.a1.status, 'stopped');
});

test('Markdown has the branch that is shown', () => {
  const text = page.chatToMarkdown(tree());
  assert.match(text, /# text of q1[^]*Be brief\.[^]*text of a2[^]*text of q2/);
  assert.doesNotMatch(text, /text of a1/);
});

test('a request has the branch, files, calls and what it continues', () => {
  let chat = page.newChat('', 0);
  chat = page.addTurn(chat, turn('q', null, 'user', 1, { files: [{ name: 'a.txt', text: 'one\n' }] }));
  const call = { id: 'c1', name: 'f', arguments: '{}' };
  chat = page.addTurn(chat, turn('a', 'q', 'assistant', 2, { content: '', reasoning: 'hm', calls: [call] }));
  chat = page.addTurn(chat, turn('t', 'a', 'tool', 3, { callId: 'c1' }));
  const body = page.requestBody(chat, turn('n', 't', 'assistant', 4, { prefix: 'It', options: { seed: 1, model: 'm' } }));
  assert.deepEqual(body.messages.map((one) => one.role), ['user', 'assistant', 'tool', 'assistant']);
  assert.equal(body.messages[0].content, 'File a.txt:\n\none\n\ntext of q');
  assert.deepEqual(body.messages[1].tool_calls[0].function, { name: 'f', arguments: '{}' });
  assert.equal(body.messages[2].tool_call_id, 'c1');
  assert.equal(body.continue_final_message, true);
  assert.equal(body.add_generation_prompt, false);
  assert.equal(body.seed, 1);
});

test('a line for a shell keeps quotes', () => {
  const line = page.curlLine('http://x', { text: "it's" }, true);
  assert.equal(line, `curl -N 'http://x/v1/chat/completions' -H 'Content-Type: application/json' -H "Authorization: Bearer $SAKER_API_KEY" -d '{"text":"it'\\''s"}'`);
});

test('settings become members of the request', () => {
  const settings = { ...page.defaults, options: { top_k: 5 }, thinking: 'none', tools: '[]', stop: ['x'], schema: '{}' };
  const options = page.requestOptions(settings, 'm');
  assert.equal(options.top_k, 5);
  assert.equal(options.reasoning_effort, 'none');
  assert.equal(options.top_logprobs, 5);
  assert.ok(Number.isInteger(options.seed));
  assert.equal('temperature' in options, false);
  assert.throws(() => page.requestOptions({ ...settings, tools: '[' }, 'm'), /^Error: Tools: /);
});

test('chunks become an answer', () => {
  const answer = page.emptyAnswer();
  const add = (delta, more = {}) => page.addChunk(answer, { choices: [{ delta, ...more }] }, 10);
  add({ reasoning_content: 'hm' });
  const logprob = { token: 'é', bytes: [195, 169], logprob: -0.5, top_logprobs: [{ token: 'e', logprob: null }] };
  add({ content: 'é' }, { logprobs: { content: [logprob] } });
  add({ tool_calls: [{ index: 0, id: 'c', function: { name: 'f', arguments: '{' } }] });
  add({ tool_calls: [{ index: 0, function: { arguments: '}' } }] });
  add({}, { finish_reason: 'tool_calls' });
  page.addChunk(answer, { choices: [], usage: { prompt_tokens: 3, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 2 } } }, 20);
  assert.equal(answer.content, 'é');
  assert.equal(answer.reasoning, 'hm');
  assert.deepEqual(answer.calls, [{ id: 'c', name: 'f', arguments: '{}' }]);
  assert.equal(answer.tokens[0].size, 2);
  assert.equal(answer.tokens[0].top[0][1], -1e9);
  assert.equal(answer.finish, 'tool_calls');
  assert.equal(answer.statistics.cachedTokens, 2);
  assert.throws(() => page.addChunk(answer, { error: { message: 'broken' } }, 0), /broken/);
});

test('metrics are sums over labels', () => {
  const text = '# HELP a x\na{le="1 }",b="c"} 2\na{} 3.5\nsaker_b 1e3\nbroken\nc{} NaN\n';
  assert.deepEqual([...page.metricsFrom(text)], [['a', 5.5], ['saker_b', 1000]]);
});

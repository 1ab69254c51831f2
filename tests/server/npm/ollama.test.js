// SPDX-License-Identifier: Apache-2.0
// Ollama's own client.
const assert = require("node:assert/strict");
const { after, before, describe, test } = require("node:test");
const { Ollama } = require("ollama");
const { PARAMETERS, TOO_LONG, collect, startServer } = require("./server.js");

const TOOLS = [{ type: "function", function: { name: "weather", description: "d", parameters: PARAMETERS } }];
const asked = (content, more) => ({ model: "fake", messages: [{ role: "user", content }], ...more });

describe("ollama", () => {
  let server, client;
  before(async () => {
    server = await startServer();
    client = new Ollama({ host: server.address });
  });
  after(() => server.stop());

  test("chats", async () => {
    const called = await client.chat(asked("call", { tools: TOOLS }));
    assert.deepEqual(called.message.tool_calls.map((call) => call.function.arguments), [{ city: "Oslo" }, { city: "Oslo" }]);
    const back = [...asked("call").messages, called.message, { role: "tool", tool_name: "weather", content: "sun" }];
    assert.equal((await client.chat({ model: "fake", messages: back, tools: TOOLS })).message.content, "sun");
    for (const think of [true, "low", "medium", "high"]) {
      assert.equal((await client.chat(asked("think", { think }))).message.thinking, "Let me see.");
    }
    const parts = await collect(await client.chat(asked("think", { stream: true })));
    assert.equal(parts.map((part) => part.message.thinking ?? "").join(""), "Let me see.");
    assert.equal(parts.map((part) => part.message.content).join(""), "It is so.");
    assert.equal(parts.at(-1).eval_count, (await client.chat(asked("think"))).eval_count);
    assert.equal((await client.chat(asked("json", { format: PARAMETERS }))).message.content, '{"city": "Oslo"}');
  });

  test("texts and vectors", async () => {
    assert.equal((await client.generate({ model: "fake", prompt: "Hello", raw: true })).response, "Hello");
    const parts = await collect(await client.generate({ model: "fake", prompt: "Hello", stream: true }));
    assert.equal(parts.map((part) => part.response).join(""), "Hello");
    assert.deepEqual((await client.embed({ model: "fake", input: ["a", "bc"] })).embeddings.map((one) => one[0]), [1, 2]);
  });

  test("facts and errors", async () => {
    assert.equal((await client.list()).models[0].model, "fake");
    assert.equal((await client.ps()).models[0].model, "fake");
    assert.ok((await client.show({ model: "fake" })).capabilities.includes("completion"));
    assert.ok((await client.version()).version);
    await assert.rejects(client.chat({ ...asked("a"), model: "no" }), (error) => error.status_code === 404);
    await assert.rejects(client.chat(asked(TOO_LONG)), /\d+ tokens.*2048/);
    await assert.rejects(async () => collect(await client.chat(asked("breaks", { stream: true }))), /broken/);
  });
});

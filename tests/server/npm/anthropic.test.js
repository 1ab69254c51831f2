// SPDX-License-Identifier: Apache-2.0
// Anthropic's own client.
const assert = require("node:assert/strict");
const { after, before, describe, test } = require("node:test");
const Anthropic = require("@anthropic-ai/sdk");
const { PARAMETERS, TOO_LONG, collect, startServer } = require("./server.js");

const TOOLS = [{ name: "weather", description: "d", input_schema: PARAMETERS }];
const asked = (content) => ({ model: "fake", max_tokens: 100, messages: [{ role: "user", content }] });

describe("anthropic", () => {
  let server, client;
  before(async () => {
    server = await startServer();
    client = new Anthropic({ baseURL: server.address, authToken: "none", apiKey: null, maxRetries: 0 });
  });
  after(() => server.stop());

  test("streams have what whole answers have", async () => {
    const kinds = { Hello: ["text"], call: ["text", "tool_use", "tool_use"], think: ["thinking", "text"], long: ["text"] };
    for (const [text, expected] of Object.entries(kinds)) {
      const options = { ...asked(text), tools: TOOLS, thinking: { type: "enabled", budget_tokens: 50 } };
      const got = await client.messages.stream(options).finalMessage();
      const whole = await client.messages.create(options);
      assert.deepEqual(got.content.map((block) => block.type), expected);
      assert.deepEqual(got.content, whole.content);
      assert.deepEqual([got.stop_reason, got.usage.output_tokens], [whole.stop_reason, whole.usage.output_tokens]);
      const { max_tokens: _, ...counting } = options;
      const counted = (await client.messages.countTokens(counting)).input_tokens;
      assert.equal(counted, whole.usage.input_tokens + (whole.usage.cache_read_input_tokens ?? 0));
    }
  });

  test("tool results go back", async () => {
    const first = await client.messages.create({ ...asked("one tool"), tools: TOOLS, tool_choice: { type: "tool", name: "weather" } });
    assert.equal(first.stop_reason, "tool_use");
    assert.deepEqual(first.content[0].input, { city: "Oslo" });
    const result = { role: "user", content: [{ type: "tool_result", tool_use_id: first.content[0].id, content: [{ type: "text", text: "sun" }] }] };
    const messages = [...asked("one tool").messages, { role: "assistant", content: first.content }, result];
    assert.equal((await client.messages.create({ ...asked(""), messages, tools: TOOLS })).content[0].text, "sun");
  });

  test("stop sequences and system prompts", async () => {
    const got = await client.messages.create({ ...asked("stopped"), stop_sequences: ["END"], system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }] });
    assert.deepEqual([got.stop_reason, got.stop_sequence], ["stop_sequence", "END"]);
  });

  test("errors", async () => {
    await assert.rejects(client.messages.create({ ...asked("a"), model: "no" }), Anthropic.NotFoundError);
    await assert.rejects(client.messages.create(asked("full")), Anthropic.RateLimitError);
    await assert.rejects(client.messages.create(asked("breaks")), Anthropic.InternalServerError);
    await assert.rejects(client.messages.stream(asked("breaks")).finalMessage(), Anthropic.APIError);
    await assert.rejects(client.messages.create(asked(TOO_LONG)), (error) => error instanceof Anthropic.BadRequestError && /\d+ tokens.*2048/.test(error.message));
    assert.deepEqual((await collect(client.models.list())).map((model) => model.id), ["fake"]);
    const model = await client.models.retrieve("fake");
    assert.deepEqual([model.id, model.type], ["fake", "model"]);
  });
});

// SPDX-License-Identifier: Apache-2.0
// OpenAI's own client: its types and its accumulators of streams read each answer.
const assert = require("node:assert/strict");
const { after, before, describe, test } = require("node:test");
const OpenAI = require("openai");
const { zodResponseFormat } = require("openai/helpers/zod");
const { z } = require("zod");
const { PARAMETERS, TOO_LONG, collect, startServer } = require("./server.js");

const TOOLS = [{ type: "function", function: { name: "weather", description: "d", parameters: PARAMETERS } }];
const FORMAT = { type: "json_schema", json_schema: { name: "place", schema: PARAMETERS, strict: true } };
const asked = (content) => [{ role: "user", content }];

describe("openai", () => {
  let server, client;
  before(async () => {
    server = await startServer();
    client = new OpenAI({ baseURL: `${server.address}/v1`, apiKey: "none", maxRetries: 0 });
  });
  after(() => server.stop());
  const chat = (content, more) => client.chat.completions.create({ model: "fake", messages: asked(content), ...more });

  test("chats", async () => {
    const got = await chat("Hello", { n: 3, stop: ["x"], seed: 1, logprobs: true, top_logprobs: 2, max_completion_tokens: 9 });
    assert.deepEqual(got.choices.map((choice) => choice.message.content), ["Hello", "Hello", "Hello"]);
    const entries = got.choices[2].logprobs.content;
    assert.equal(Buffer.from(entries.flatMap((entry) => entry.bytes)).toString(), "Hello");
    assert.ok(entries.every((entry) => entry.top_logprobs.length === 2 && entry.top_logprobs[0].logprob === entry.logprob));
    assert.equal(got.usage.total_tokens, got.usage.prompt_tokens + got.usage.completion_tokens);
    const thought = await chat("think");
    assert.equal(thought.choices[0].message.reasoning_content, "Let me see.");
    assert.equal(thought.usage.prompt_tokens_details.cached_tokens, 3);
    assert.equal((await chat("stopped", { stop: "END" })).choices[0].finish_reason, "stop");
    assert.equal((await chat("long", { max_tokens: 1 })).choices[0].finish_reason, "length");
  });

  test("streams have what whole answers have", async () => {
    for (const text of ["Hello", "call", "think", "long"]) {
      const options = { model: "fake", messages: asked(text), tools: TOOLS };
      const got = await client.chat.completions.stream({ ...options, stream_options: { include_usage: true } }).finalChatCompletion();
      const whole = await client.chat.completions.create(options);
      const [choice, expected] = [got.choices[0], whole.choices[0]];
      assert.equal(choice.finish_reason, expected.finish_reason);
      assert.equal(choice.message.content ?? "", expected.message.content ?? "");
      const calls = (message) => (message.tool_calls ?? []).map((call) => [call.id, call.function.name, call.function.arguments]);
      assert.deepEqual(calls(choice.message), calls(expected.message));
      assert.equal(calls(choice.message).length, text === "call" ? 2 : 0);
      assert.deepEqual(got.usage, whole.usage);
    }
    const chunks = await collect(await chat("Hello", { stream: true, n: 3, logprobs: true }));
    assert.deepEqual(new Set(chunks.map((chunk) => chunk.choices[0].index)), new Set([0, 1, 2]));
    for (const index of [0, 1, 2]) {
      const own = chunks.filter((chunk) => chunk.choices[0].index === index).map((chunk) => chunk.choices[0]);
      assert.equal(own.map((choice) => choice.delta.content ?? "").join(""), "Hello");
      const bytes = own.flatMap((choice) => (choice.logprobs?.content ?? []).flatMap((entry) => entry.bytes));
      assert.equal(Buffer.from(bytes).toString(), "Hello");
    }
  });

  test("tools run until there is an answer", async () => {
    const asks = [];
    const weather = { ...TOOLS[0].function, parse: JSON.parse, function: ({ city }) => (asks.push(city), "sun") };
    const runner = client.chat.completions.runTools({
      model: "fake", messages: asked("one tool"), tools: [{ type: "function", function: weather }], tool_choice: "auto",
    });
    assert.equal(await runner.finalContent(), "sun"); // The scripted model repeats the tool's result.
    assert.deepEqual(asks, ["Oslo"]);
    const forced = await chat("one tool", { tools: TOOLS, tool_choice: { type: "function", function: { name: "weather" } }, parallel_tool_calls: false });
    assert.equal(forced.choices[0].message.tool_calls[0].function.name, "weather");
    assert.equal((await chat("Hello", { tools: TOOLS, tool_choice: "none" })).choices[0].finish_reason, "stop");
  });

  test("structured answers", async () => {
    const options = { model: "fake", messages: asked("json"), response_format: FORMAT };
    assert.equal((await client.chat.completions.create(options)).choices[0].message.content, '{"city": "Oslo"}');
    const response_format = zodResponseFormat(z.object({ city: z.string() }), "place");
    const parsed = await client.chat.completions.parse({ ...options, response_format });
    assert.deepEqual(parsed.choices[0].message.parsed, { city: "Oslo" });
    await assert.rejects(client.chat.completions.parse({ ...options, messages: asked("long"), response_format }), OpenAI.LengthFinishReasonError);
    assert.equal((await chat("json", { response_format: { type: "json_object" } })).choices[0].message.content, '{"city": "Oslo"}');
  });

  test("completions", async () => {
    const got = await client.completions.create({ model: "fake", prompt: ["Once", "upon"], echo: true, logprobs: 1, max_tokens: 4 });
    assert.deepEqual(got.choices.map((choice) => choice.text), ["OnceOnce", "uponupon"]);
    assert.equal(got.choices[0].logprobs.token_logprobs[0], null);
    const chunks = await collect(await client.completions.create({ model: "fake", prompt: "Once", stream: true }));
    assert.equal(chunks.map((chunk) => chunk.choices[0].text).join(""), "Once");
  });

  test("vectors", async () => {
    const input = ["Once", "Once upon"];
    const packed = await client.embeddings.create({ model: "fake", input }); // This client asks for base64 by itself.
    const floats = await client.embeddings.create({ model: "fake", input, encoding_format: "float" });
    assert.deepEqual(packed.data.map((one) => [...one.embedding]), [[4, 0.5, -1, 0.25], [9, 0.5, -1, 0.25]]);
    assert.deepEqual(floats.data.map((one) => one.embedding), packed.data.map((one) => [...one.embedding]));
  });

  test("responses", async () => {
    const tools = [{ type: "function", name: "weather", parameters: PARAMETERS, strict: false }, { type: "web_search" }];
    const first = await client.responses.create({ model: "fake", input: "Hello", instructions: "Be brief." });
    assert.deepEqual([first.output_text, first.status], ["Hello", "completed"]);
    const second = await client.responses.create({ model: "fake", input: "think", previous_response_id: first.id });
    assert.deepEqual(second.output.map((item) => item.type), ["reasoning", "message"]);
    assert.ok(second.usage.input_tokens > first.usage.input_tokens);
    const stream = client.responses.stream({ model: "fake", input: "call", tools });
    const kinds = (await collect(stream)).map((event) => event.type);
    const got = await stream.finalResponse();
    assert.deepEqual([kinds[0], kinds.at(-1)], ["response.created", "response.completed"]);
    assert.deepEqual(got.output.map((item) => item.type), ["message", "function_call", "function_call"]);
    const output = { type: "function_call_output", call_id: "call_1", output: "sun" };
    const after = await client.responses.create({ model: "fake", previous_response_id: got.id, input: [output, { ...output, call_id: "call_2" }] });
    assert.equal(after.output_text, "sun");
    const whole = await client.responses.create({ model: "fake", input: [{ role: "user", content: "call" }, ...got.output, output], store: false });
    assert.equal(whole.output_text, "sun");
    assert.equal((await client.responses.create({ model: "fake", input: "long" })).incomplete_details.reason, "max_output_tokens");
    const text = { format: { type: "json_schema", name: "place", schema: PARAMETERS, strict: true } };
    assert.equal((await client.responses.create({ model: "fake", input: "json", text })).output_text, '{"city": "Oslo"}');
    assert.equal((await client.responses.retrieve(first.id)).output[0].content[0].text, "Hello");
    assert.equal((await collect(client.responses.inputItems.list(first.id))).length, 1);
    const counted = await client.responses.inputTokens.count({ model: "fake", input: "Hello", instructions: "Be brief." });
    assert.equal(counted.input_tokens, first.usage.input_tokens);
    await client.responses.delete(first.id);
    await assert.rejects(client.responses.retrieve(first.id), OpenAI.NotFoundError);
  });

  test("errors", async () => {
    await assert.rejects(chat("a", { temperature: -1 }), OpenAI.BadRequestError);
    await assert.rejects(chat("a", { mirostat: 2 }), (error) => error.param === "mirostat" && Boolean(error.requestID));
    await assert.rejects(chat("full"), OpenAI.RateLimitError);
    await assert.rejects(chat("breaks"), OpenAI.InternalServerError);
    await assert.rejects(chat("a", { model: "no" }), OpenAI.NotFoundError);
    await assert.rejects(async () => collect(await chat("breaks", { stream: true })), OpenAI.APIError);
    const calls = [
      () => chat(TOO_LONG),
      () => client.completions.create({ model: "fake", prompt: TOO_LONG }),
      () => client.responses.create({ model: "fake", input: TOO_LONG }),
    ];
    for (const call of calls) {
      await assert.rejects(call, (error) => error instanceof OpenAI.BadRequestError && /\d+ tokens.*2048/.test(error.message));
    }
    assert.deepEqual((await collect(client.models.list())).map((model) => model.id), ["fake"]);
    assert.equal((await client.models.retrieve("fake")).id, "fake");
  });

  test("a client that stops reading frees its place", async () => {
    const stream = await chat("Hello", { stream: true });
    for await (const _ of stream) {
      stream.controller.abort();
    }
    assert.equal((await chat("Hello")).choices[0].message.content, "Hello");
  });
});

// SPDX-License-Identifier: Apache-2.0
// The AI SDK with the packages of three providers, which check each piece of a stream by a schema.
const assert = require("node:assert/strict");
const { after, before, describe, test } = require("node:test");
const { createAnthropic } = require("@ai-sdk/anthropic");
const { createOpenAI } = require("@ai-sdk/openai");
const { createOpenAICompatible } = require("@ai-sdk/openai-compatible");
const { embedMany, generateObject, generateText, stepCountIs, streamObject, streamText, tool } = require("ai");
const { z } = require("zod");
const { TOO_LONG, collect, startServer } = require("./server.js");

globalThis.AI_SDK_LOG_WARNINGS = false;
const schema = z.object({ city: z.string() });

describe("ai", () => {
  let server;
  const models = {};
  before(async () => {
    server = await startServer();
    const base = { baseURL: `${server.address}/v1`, apiKey: "none" };
    const compatible = createOpenAICompatible({ ...base, name: "saker", includeUsage: true, supportsStructuredOutputs: true });
    const openai = createOpenAI(base);
    models.compatible = compatible("fake");
    models.responses = openai("fake");
    models.chat = openai.chat("fake");
    models.anthropic = createAnthropic(base)("fake");
    models.vectors = openai.embedding("fake");
  });
  after(() => server.stop());
  const each = (name, run) => {
    for (const provider of ["compatible", "responses", "chat", "anthropic"]) {
      test(`${name}: ${provider}`, () => run({ model: models[provider], maxRetries: 0 }, provider));
    }
  };

  each("texts", async (base) => {
    const got = await generateText({ ...base, prompt: "Hello", system: "Be brief.", maxOutputTokens: 20 });
    assert.deepEqual([got.text, got.finishReason], ["Hello", "stop"]);
    assert.ok(got.usage.inputTokens > 0 && got.usage.outputTokens > 0);
    assert.equal((await generateText({ ...base, prompt: "long" })).finishReason, "length");
    const stream = streamText({ ...base, prompt: "Hello" });
    assert.equal((await collect(stream.textStream)).join(""), "Hello");
    assert.deepEqual(await stream.usage.then((usage) => usage.outputTokens), got.usage.outputTokens);
  });

  each("thoughts", async (base, provider) => {
    const got = await generateText({ ...base, prompt: "think" });
    const stream = streamText({ ...base, prompt: "think" });
    assert.equal(got.text, "It is so.");
    assert.equal(await stream.text, got.text);
    assert.equal(await stream.reasoningText, got.reasoningText);
    if (provider === "compatible" || provider === "anthropic") {
      assert.equal(got.reasoningText, "Let me see.");
    }
  });

  each("tools", async (base) => {
    const asks = [];
    const weather = tool({ description: "d", inputSchema: schema, execute: async ({ city }) => (asks.push(city), "sun") });
    const options = { ...base, prompt: "one tool", tools: { weather }, stopWhen: stepCountIs(2) };
    const got = await generateText(options);
    assert.match(got.text, /sun/);
    const stream = streamText(options);
    await stream.consumeStream({ onError: (error) => { throw error; } });
    assert.equal(await stream.text, got.text);
    assert.deepEqual(asks, ["Oslo", "Oslo"]);
    assert.equal((await stream.steps).length, 2);
  });

  each("objects", async (base) => {
    const options = { ...base, prompt: "json", schema, schemaName: "place" };
    assert.deepEqual((await generateObject(options)).object, { city: "Oslo" });
    const stream = streamObject(options);
    assert.deepEqual((await collect(stream.partialObjectStream)).at(-1), { city: "Oslo" });
    assert.deepEqual(await stream.object, { city: "Oslo" });
  });

  each("errors", async (base) => {
    await assert.rejects(generateText({ ...base, prompt: "full" }), (error) => error.statusCode === 429 && error.isRetryable);
    await assert.rejects(generateText({ ...base, prompt: TOO_LONG }), (error) => error.statusCode === 400 && !error.isRetryable);
    const errors = [];
    await streamText({ ...base, prompt: "breaks", onError: ({ error }) => errors.push(error) }).consumeStream();
    assert.equal(errors.length, 1);
  });

  test("vectors", async () => {
    const got = await embedMany({ model: models.vectors, values: ["Once", "Once upon"], maxRetries: 0 });
    assert.deepEqual(got.embeddings.map((one) => one[0]), [4, 9]);
  });
});

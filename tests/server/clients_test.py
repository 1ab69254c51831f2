# SPDX-License-Identifier: Apache-2.0
"""The vendors' own clients, whose types check each answer: openai, anthropic, ollama."""
import json
import pathlib
import unittest

import anthropic
import ollama
import openai

from fake import FakeServerTest

SCRIPT = json.loads((pathlib.Path(__file__).parent / "clients_script.json").read_text())
CALL = SCRIPT[1]["events"][1]["call"]
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
LONG = "a b c d e f g h " * 400  # More tokens than the scripted model's context has.


def asked(text):
    return [{"role": "user", "content": text}]


class OpenAI(FakeServerTest):
    SCRIPT = SCRIPT
    TOOLS = [{"type": "function", "function": {"name": "weather", "description": "d", "parameters": PARAMETERS}}]

    def setUp(self):
        super().setUp()
        self.client = openai.OpenAI(base_url=self.server.address + "/v1", api_key="none", max_retries=0)
        self.addCleanup(self.client.close)

    def chat(self, text, **more):
        return self.client.chat.completions.create(model="fake", messages=asked(text), **more)

    def test_chats(self):
        got = self.chat("Hello", n=2, stop=["x"], seed=1, logprobs=True, top_logprobs=2, max_completion_tokens=9, user="u")
        self.assertEqual([choice.message.content for choice in got.choices], ["Hello", "Hello"])
        self.assertEqual(bytes(b for entry in got.choices[0].logprobs.content for b in entry.bytes), b"Hello")
        self.assertEqual(got.usage.total_tokens, got.usage.prompt_tokens + got.usage.completion_tokens)
        self.assertEqual(self.chat("think").choices[0].message.reasoning_content, "Let me see.")
        calls = self.chat("call", tools=self.TOOLS).choices[0]
        self.assertEqual((calls.finish_reason, calls.message.tool_calls[1].id), ("tool_calls", "call_2"))
        self.assertEqual(calls.message.tool_calls[0].function.arguments, CALL["arguments"])
        self.assertEqual(self.chat("stopped", stop="END").choices[0].message.content, "ab")
        self.assertEqual(self.chat("long", max_tokens=1).choices[0].finish_reason, "length")
        self.assertEqual(self.chat("think").usage.prompt_tokens_details.cached_tokens, 3)

    def test_custom_tools(self):
        tools = [{"type": "custom", "custom": {"name": "weather"}}]
        call = self.chat("one tool", tools=tools).choices[0].message.tool_calls[0]
        self.assertEqual((call.type, call.custom.name, call.custom.input), ("custom", "weather", CALL["arguments"]))
        back = [*asked("one tool"), {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": call.id, "content": "sun"}]
        got = self.client.chat.completions.create(model="fake", messages=back, tools=tools)
        self.assertEqual(got.choices[0].message.content, "sun")

    def test_tools_go_back_and_forth(self):
        named = {"type": "function", "function": {"name": "weather"}}
        for choice in ("auto", "required", named):
            first = self.chat("one tool", tools=self.TOOLS, tool_choice=choice, parallel_tool_calls=False).choices[0].message
            self.assertEqual(first.tool_calls[0].function.name, "weather")
        back = [*asked("one tool"), first, {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "sun"}]
        got = self.client.chat.completions.create(model="fake", messages=back, tools=self.TOOLS)
        self.assertEqual(got.choices[0].message.content, "sun")  # The scripted model repeats the tool's result.
        self.assertEqual(self.chat("Hello", tools=self.TOOLS, tool_choice="none").choices[0].finish_reason, "stop")

    def test_vectors(self):
        vectors = {form: [one.embedding for one in self.client.embeddings.create(model="fake", input=["Once", "Once upon"], **more).data]
                   for form, more in (("default", {}), ("floats", {"encoding_format": "float"}))}
        self.assertEqual(vectors["default"], [[4, 0.5, -1, 0.25], [9, 0.5, -1, 0.25]])
        self.assertEqual(vectors["default"], vectors["floats"])

    def test_streams_by_the_accumulator(self):
        for text in ("Hello", "call", "think", "stopped"):
            options = {"model": "fake", "messages": asked(text), "tools": self.TOOLS, "stream_options": {"include_usage": True}}
            with self.client.chat.completions.stream(**options) as stream:
                got = stream.get_final_completion()
            whole = self.chat(text, tools=self.TOOLS)
            choice, expected = got.choices[0], whole.choices[0]
            self.assertEqual(choice.finish_reason, expected.finish_reason)
            self.assertEqual(choice.message.content or "", expected.message.content or "")
            names = [(c.id, c.function.name, c.function.arguments) for c in choice.message.tool_calls or []]
            self.assertEqual(names, [(c.id, c.function.name, c.function.arguments) for c in expected.message.tool_calls or []])
            self.assertEqual(got.usage.completion_tokens, whole.usage.completion_tokens)
        chunks = list(self.chat("Hello", stream=True, n=3, logprobs=True))
        for index in range(3):
            own = [chunk.choices[0] for chunk in chunks if chunk.choices[0].index == index]
            self.assertEqual("".join(choice.delta.content or "" for choice in own), "Hello")
            entries = [entry for choice in own if choice.logprobs for entry in choice.logprobs.content]
            self.assertEqual(bytes(byte for entry in entries for byte in entry.bytes), b"Hello")

    def test_structured(self):
        schema = {"name": "place", "schema": PARAMETERS, "strict": True}
        self.assertEqual(self.chat("json", response_format={"type": "json_schema", "json_schema": schema}).choices[0].message.content,
                         '{"city": "Oslo"}')
        with self.assertRaises(openai.LengthFinishReasonError):
            self.client.chat.completions.parse(model="fake", messages=asked("long"), response_format={"type": "json_schema", "json_schema": schema})

    def test_completions(self):
        got = self.client.completions.create(model="fake", prompt=["Once", "upon"], echo=True, logprobs=1, max_tokens=4)
        self.assertEqual([choice.text for choice in got.choices], ["OnceOnce", "uponupon"])
        self.assertIsNone(got.choices[0].logprobs.token_logprobs[0])
        text = "".join(chunk.choices[0].text for chunk in self.client.completions.create(model="fake", prompt="Once", stream=True))
        self.assertEqual(text, "Once")

    def test_errors(self):
        for error, text, more in ((openai.BadRequestError, "a", {"temperature": -1}), (openai.RateLimitError, "full", {}),
                                  (openai.InternalServerError, "breaks", {})):
            with self.assertRaises(error) as caught:
                self.chat(text, **more)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.chat("a", extra_body={"mirostat": 2})
        self.assertEqual(caught.exception.param, "mirostat")
        self.assertTrue(caught.exception.request_id)
        for call in (lambda: self.chat(LONG), lambda: self.client.completions.create(model="fake", prompt=LONG),
                     lambda: self.client.responses.create(model="fake", input=LONG)):
            with self.assertRaisesRegex(openai.BadRequestError, r"\d+ tokens.*2048"):
                call()
        with self.assertRaises(openai.NotFoundError):
            self.client.chat.completions.create(model="no", messages=asked("a"))
        with self.assertRaises(openai.APIError):
            list(self.chat("breaks", stream=True))
        self.assertEqual([model.id for model in self.client.models.list()], ["fake"])
        self.assertEqual(self.client.models.retrieve("fake").id, "fake")

    def test_responses(self):
        tools = [{"type": "function", "name": "weather", "parameters": PARAMETERS, "strict": False}, {"type": "web_search"}]
        first = self.client.responses.create(model="fake", input="Hello", instructions="Be brief.")
        self.assertEqual((first.output_text, first.status), ("Hello", "completed"))
        second = self.client.responses.create(model="fake", input="think", previous_response_id=first.id)
        self.assertEqual([item.type for item in second.output], ["reasoning", "message"])
        self.assertGreater(second.usage.input_tokens, first.usage.input_tokens)
        with self.client.responses.stream(model="fake", input="call", tools=tools) as stream:
            kinds = [event.type for event in stream]
            got = stream.get_final_response()
        self.assertEqual(kinds[0], "response.created")
        self.assertEqual(kinds[-1], "response.completed")
        self.assertEqual([item.type for item in got.output], ["message", "function_call", "function_call"])
        self.assertEqual((got.output[1].call_id, got.output[1].arguments), ("call_1", CALL["arguments"]))
        back = [*got.output, {"type": "function_call_output", "call_id": "call_1", "output": "sun"}]
        self.client.responses.create(model="fake", input=[{"role": "user", "content": "a"}, *back], store=False)
        self.client.responses.create(model="fake", previous_response_id=got.id, input=back[3:])
        self.assertEqual(self.client.responses.create(model="fake", input="long").status, "incomplete")
        counted = self.client.responses.input_tokens.count(model="fake", input="Hello", instructions="Be brief.")
        self.assertEqual(counted.input_tokens, first.usage.input_tokens)
        text = {"format": {"type": "json_schema", "name": "place", "schema": PARAMETERS, "strict": True}}
        self.assertEqual(self.client.responses.create(model="fake", input="json", text=text).output_text, '{"city": "Oslo"}')
        self.assertEqual(self.client.responses.retrieve(first.id).output_text, "Hello")
        self.assertEqual(len(list(self.client.responses.input_items.list(first.id))), 1)
        self.client.responses.delete(first.id)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.create(model="fake", input="a", previous_response_id=first.id)
        with self.assertRaises(openai.BadRequestError):
            self.client.responses.create(model="fake", input="a", background=True)


class Anthropic(FakeServerTest):
    SCRIPT = SCRIPT
    TOOLS = [{"name": "weather", "description": "d", "input_schema": PARAMETERS}]

    def setUp(self):
        super().setUp()
        self.client = anthropic.Anthropic(base_url=self.server.address, auth_token="none", max_retries=0)
        self.addCleanup(self.client.close)

    def test_streams_by_the_accumulator(self):
        for text in ("Hello", "call", "think", "long"):
            options = {"model": "fake", "max_tokens": 100, "messages": asked(text), "tools": self.TOOLS}
            with self.client.messages.stream(**options) as stream:
                got = stream.get_final_message()
            whole = self.client.messages.create(**options)
            self.assertEqual([block.to_dict() for block in got.content], [block.to_dict() for block in whole.content])
            self.assertEqual((got.stop_reason, got.usage.output_tokens), (whole.stop_reason, whole.usage.output_tokens))
            counted = self.client.messages.count_tokens(model="fake", messages=asked(text), tools=self.TOOLS).input_tokens
            self.assertEqual(counted, whole.usage.input_tokens + whole.usage.cache_read_input_tokens)

    def test_tools_go_back(self):
        first = self.client.messages.create(model="fake", max_tokens=9, messages=asked("one tool"), tools=self.TOOLS, tool_choice={"type": "any"})
        self.assertEqual((first.stop_reason, first.content[0].input), ("tool_use", {"city": "Oslo"}))
        result = {"type": "tool_result", "tool_use_id": first.content[0].id, "content": [{"type": "text", "text": "sun"}]}
        messages = [*asked("one tool"), {"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        self.assertEqual(self.client.messages.create(model="fake", max_tokens=9, messages=messages, tools=self.TOOLS).content[0].text, "sun")
        got = self.client.messages.create(model="fake", max_tokens=9, messages=asked("stopped"), stop_sequences=["END"], system="Be brief.")
        self.assertEqual((got.stop_reason, got.stop_sequence), ("stop_sequence", "END"))

    def test_errors(self):
        for error, text, model in ((anthropic.NotFoundError, "a", "no"), (anthropic.RateLimitError, "full", "fake"),
                                   (anthropic.InternalServerError, "breaks", "fake")):
            with self.assertRaises(error):
                self.client.messages.create(model=model, max_tokens=5, messages=asked(text))
        with self.assertRaisesRegex(anthropic.BadRequestError, r"\d+ tokens.*2048"):
            self.client.messages.create(model="fake", max_tokens=5, messages=asked(LONG))
        self.assertEqual([model.id for model in self.client.models.list()], ["fake"])


class Ollama(FakeServerTest):
    SCRIPT = SCRIPT
    TOOLS = [{"type": "function", "function": {"name": "weather", "description": "d", "parameters": PARAMETERS}}]

    def test_calls(self):
        client = ollama.Client(host=self.server.address)
        got = client.chat("fake", messages=asked("call"), tools=self.TOOLS)
        self.assertEqual(got.message.tool_calls[0].function.arguments, {"city": "Oslo"})
        back = [*asked("call"), got.message, {"role": "tool", "tool_name": "weather", "content": "sun"}]
        self.assertEqual(client.chat("fake", messages=back, tools=self.TOOLS).message.content, "sun")
        for level in (True, "low", "medium", "high"):
            self.assertEqual(client.chat("fake", messages=asked("think"), think=level).message.thinking, "Let me see.")
        self.assertEqual([one[0] for one in client.embed("fake", ["a", "bc"]).embeddings], [1, 2])
        with self.assertRaisesRegex(ollama.ResponseError, r"\d+ tokens.*2048"):
            client.chat("fake", messages=asked(LONG))
        text = "".join(part.message.content for part in client.chat("fake", messages=asked("Hello"), stream=True))
        self.assertEqual(text, "Hello")
        self.assertEqual(client.generate("fake", "Hello", raw=True).response, "Hello")
        self.assertEqual("".join(part.response for part in client.generate("fake", "Hello", stream=True)), "Hello")
        self.assertEqual(client.chat("fake", messages=asked("json"), format=PARAMETERS).message.content, '{"city": "Oslo"}')
        self.assertEqual(client.list().models[0].model, "fake")
        self.assertEqual(client.ps().models[0].model, "fake")
        self.assertIn("completion", client.show("fake").capabilities)
        with self.assertRaises(ollama.ResponseError) as caught:
            client.chat("no", messages=asked("a"))
        self.assertEqual(caught.exception.status_code, 404)


if __name__ == "__main__":
    unittest.main()

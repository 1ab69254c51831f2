# SPDX-License-Identifier: Apache-2.0
"""OpenAI's chat completions over a scripted model."""
import json
import unittest

from fake import USER, FakeServerTest

PATCH = "*** Begin\n\"quoted\" \\ é\n*** End"
CUSTOM = {"type": "custom", "custom": {"name": "apply_patch", "description": "Edits files."}}
CALL = {"id": "call_1", "name": "weather", "arguments": '{"city": "Oslo"}'}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
PATH = "/v1/chat/completions"


def joined(chunks, index=0):
    """The message that a client puts together from chunks."""
    message = {"content": "", "reasoning": "", "calls": {}, "finish": None}
    for _, chunk in chunks:
        if chunk == "[DONE]":
            continue
        for choice in chunk["choices"]:
            if choice["index"] != index:
                continue
            delta = choice["delta"]
            message["content"] += delta.get("content") or ""
            message["reasoning"] += delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls", []):
                known = message["calls"].setdefault(call["index"], {"id": "", "name": "", "arguments": ""})
                known["id"] += call.get("id", "")
                known["name"] += call["function"].get("name", "")
                known["arguments"] += call["function"].get("arguments", "")
            message["finish"] = choice["finish_reason"] or message["finish"]
    return message


class Chat(FakeServerTest):
    SCRIPT = [
        {"when": "think", "events": [{"reasoning": "Let me see."}, {"content": "It is so."}]},
        {"when": "call", "events": [{"content": "Looking."}, {"call": CALL}, {"call": {**CALL, "id": "call_2"}}], "cached_tokens": 2},
        {"when": "silent", "events": [{"call": CALL}]},
        {"when": "patch", "events": [{"call": {"id": "call_1", "name": "apply_patch", "arguments": json.dumps({"input": PATCH})}},
                                     {"call": {**CALL, "id": "call_2"}}]},
        {"when": "broken", "events": [{"call": {"id": "call_3", "name": "apply_patch", "arguments": '{"inp'}}]},
        {"when": "long", "events": [{"content": "cut"}], "finish_reason": "length"},
        {"when": "stopped", "events": [{"content": "ab"}], "stop_string": "END"},
        {"when": "full", "refuses": {"code": "capacity", "message": "the queue is full"}},
        {"when": "breaks", "events": [{"content": "a"}], "fails": {"code": "internal", "message": "broken"}},
    ]

    def ask(self, text, **more):
        return {"messages": [{"role": "user", "content": text}], **more}

    def test_a_whole_answer(self):
        got = self.post(PATH, self.ask("Hello there, Grüße"))
        self.assertEqual(got["object"], "chat.completion")
        self.assertTrue(got["id"].startswith("chatcmpl-"))
        self.assertEqual(got["model"], "fake")
        choice = got["choices"][0]
        self.assertEqual(choice["message"], {"role": "assistant", "content": "Hello there, Grüße", "refusal": None, "annotations": []})
        self.assertEqual(choice["finish_reason"], "stop")
        usage = got["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        self.assertEqual(usage["prompt_tokens_details"]["cached_tokens"], 0)

    def test_streams_say_what_whole_answers_say(self):
        for text in ("Hello there", "think", "call", "silent", "long", "stopped"):
            body = self.ask(text, tools=TOOLS)
            whole = self.post(PATH, body)["choices"][0]
            chunks = self.stream(PATH, body)
            self.assertEqual(chunks[-1][1], "[DONE]")
            self.assertEqual(chunks[0][1]["choices"][0]["delta"], {"role": "assistant", "content": ""})
            got = joined(chunks)
            message = whole["message"]
            self.assertEqual(got["content"], message["content"] or "")
            self.assertEqual(got["reasoning"], message.get("reasoning_content", ""))
            self.assertEqual(got["finish"], whole["finish_reason"])
            calls = [{"id": c["id"], **c["function"]} for c in message.get("tool_calls", [])]
            self.assertEqual(list(got["calls"].values()), calls)
            self.assertEqual(len({chunk["id"] for _, chunk in chunks[:-1]}), 1)

    def test_custom_tools_take_text(self):
        body = self.ask("patch", tools=[CUSTOM, *TOOLS])
        choice = self.post(PATH, body)["choices"][0]
        self.assertEqual(choice["finish_reason"], "tool_calls")
        function = {"name": "weather", "arguments": CALL["arguments"]}
        calls = [{"id": "call_1", "type": "custom", "custom": {"name": "apply_patch", "input": PATCH}},
                 {"id": "call_2", "type": "function", "function": function}]
        self.assertEqual(choice["message"]["tool_calls"], calls)
        parts = [part for _, chunk in self.stream(PATH, body)[:-1] for choice in chunk["choices"] for part in choice["delta"].get("tool_calls", [])]
        self.assertEqual(parts[:3], [{"index": 0, "id": "call_1", "type": "custom", "custom": {"name": "apply_patch", "input": ""}},
                                     {"index": 0, "custom": {"input": PATCH}},
                                     {"index": 1, "id": "call_2", "type": "function", "function": {"name": "weather", "arguments": ""}}])
        self.assertEqual("".join(part["function"]["arguments"] for part in parts[2:]), CALL["arguments"])
        broken = self.ask("broken", tools=[CUSTOM])
        self.assertEqual(self.post(PATH, broken)["choices"][0]["message"]["tool_calls"][0]["custom"]["input"], '{"inp')
        cut = [part for _, chunk in self.stream(PATH, broken)[:-1] for choice in chunk["choices"] for part in choice["delta"].get("tool_calls", [])]
        self.assertEqual(cut[-1], {"index": 0, "custom": {"input": '{"inp'}})

    def test_calls_of_custom_tools_come_back(self):
        def counted(call):
            messages = [*self.ask("patch")["messages"], {"role": "assistant", "content": None, "tool_calls": [call]},
                        {"role": "tool", "tool_call_id": "call_1", "content": "done"}]
            return self.post(PATH, {"messages": messages, "tools": [CUSTOM]})["usage"]["prompt_tokens"]

        custom = {"id": "call_1", "type": "custom", "custom": {"name": "apply_patch", "input": PATCH}}
        function = {"id": "call_1", "type": "function", "function": {"name": "apply_patch", "arguments": json.dumps({"input": PATCH}, ensure_ascii=False)}}
        self.assertEqual(counted(custom), counted(function))
        for wrong, param in (({**custom, "custom": {"name": "a"}}, "messages[1].tool_calls[0].custom.input"),
                             ({"id": "call_1", "type": "custom"}, "messages[1].tool_calls[0].custom")):
            messages = [*self.ask("patch")["messages"], {"role": "assistant", "tool_calls": [wrong]}]
            self.assertEqual(self.post(PATH, {"messages": messages}, 400)["error"]["param"], param)

    def test_formats_of_custom_tools(self):
        def tool(**custom):
            return self.ask("a", tools=[{"type": "custom", "custom": custom}])

        def grammar(**members):
            return tool(name="t", format={"type": "grammar", "grammar": members})

        self.post(PATH, grammar(syntax="regex", definition="[ab]+"))
        self.post(PATH, {**tool(name="t"), "tool_choice": {"type": "custom", "custom": {"name": "t"}}})
        allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "custom", "custom": {"name": "t"}}]}}
        self.post(PATH, {**tool(name="t"), "tool_choice": allowed})
        for wrong, param in ((grammar(syntax="gbnf", definition="a"), "tools[0].custom.format.grammar.syntax"),
                             (grammar(syntax="lark"), "tools[0].custom.format.grammar.definition"),
                             (tool(description="a"), "tools[0].custom.name"), (self.ask("a", tools=[{"type": "custom"}]), "tools[0].custom")):
            self.assertEqual(self.post(PATH, wrong, 400)["error"]["param"], param)

    def test_calls_and_reasons(self):
        got = self.post(PATH, self.ask("call", tools=TOOLS))
        choice = got["choices"][0]
        self.assertEqual(choice["finish_reason"], "tool_calls")
        self.assertEqual([call["id"] for call in choice["message"]["tool_calls"]], ["call_1", "call_2"])
        self.assertEqual(json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"]), {"city": "Oslo"})
        self.assertEqual(got["usage"]["prompt_tokens_details"]["cached_tokens"], 2)
        self.assertIsNone(self.post(PATH, self.ask("silent", tools=TOOLS))["choices"][0]["message"]["content"])
        self.assertEqual(self.post(PATH, self.ask("long"))["choices"][0]["finish_reason"], "length")
        self.assertEqual(self.post(PATH, self.ask("stopped"))["choices"][0]["stop_reason"], "END")

    def test_usage_comes_last(self):
        for more in ({}, {"n": 3}):
            chunks = self.stream(PATH, self.ask("Hello", stream_options={"include_usage": True}, **more))
            last = chunks[-2][1]
            self.assertEqual(last["choices"], [])
            self.assertGreater(last["usage"]["completion_tokens"], 0)
            self.assertTrue(all(chunk["usage"] is None for _, chunk in chunks[:-2]))
        self.assertNotIn("usage", self.stream(PATH, self.ask("Hello"))[0][1])

    def test_choices(self):
        got = self.post(PATH, self.ask("Hello", n=3))
        self.assertEqual([choice["index"] for choice in got["choices"]], [0, 1, 2])
        self.assertEqual({choice["message"]["content"] for choice in got["choices"]}, {"Hello"})
        chunks = self.stream(PATH, self.ask("Hello", n=3))
        self.assertEqual([chunk["choices"][0]["index"] for _, chunk in chunks[:3]], [0, 1, 2])
        for i in range(3):
            self.assertEqual(joined(chunks, i)["content"], "Hello")

    def test_log_probabilities_are_of_content(self):
        body = self.ask("think", logprobs=True, top_logprobs=2)
        content = self.post(PATH, body)["choices"][0]["logprobs"]["content"]
        self.assertEqual("".join(entry["token"] for entry in content), "It is so.")
        self.assertEqual(bytes(byte for entry in content for byte in entry["bytes"]), b"It is so.")
        self.assertTrue(all(entry["logprob"] == -0.5 and len(entry["top_logprobs"]) == 2 for entry in content))
        streamed = [entry for _, chunk in self.stream(PATH, body)[:-1] for choice in chunk["choices"]
                    for entry in (choice["logprobs"] or {"content": []})["content"]]
        self.assertEqual(streamed, content)
        self.assertIsNone(self.post(PATH, self.ask("think"))["choices"][0]["logprobs"])

    def test_prompt_logprobs(self):
        tokens = self.post("/tokenize", self.ask("Hello"))["tokens"]
        got = self.post(PATH, self.ask("Hello", prompt_logprobs=2))["prompt_logprobs"]
        self.assertEqual(len(got), len(tokens))
        self.assertIsNone(got[0])
        for token, at in zip(tokens[1:], got[1:]):
            self.assertEqual(at[str(token)]["logprob"], -0.5)
            self.assertIn(len(at), (2, 3))
            self.assertEqual(at[str(token)]["decoded_token"], self.post("/detokenize", {"tokens": [token]})["content"])
            self.assertEqual(sorted(entry["rank"] for entry in at.values())[0], 1)
        self.assertNotIn("prompt_logprobs", self.post(PATH, self.ask("Hello")))

    def test_errors_name_the_field(self):
        cases = {
            "messages": [{}, {"messages": []}, {"messages": "x"}, {"messages": [{"role": "system", "content": "a"}]}],
            "messages[0]": [{"messages": [5]}],
            "messages[0].role": [{"messages": [{"role": "wizard", "content": "a"}]}, {"messages": [{"content": "a"}]}],
            "messages[0].content": [{"messages": [{"role": "user", "content": 5}]}],
            "temperature": [{"temperature": "hot"}, {"temperature": -1}, {"temperature": 1e400}],
            "top_p": [{"top_p": 2}], "max_tokens": [{"max_tokens": 0}, {"max_tokens": 1.5}, {"max_tokens": "9"}],
            "n": [{"n": 0}, {"n": 1000}], "stop": [{"stop": 5}, {"stop": [""]}], "seed": [{"seed": "a"}],
            "logit_bias": [{"logit_bias": {"x": 1}}, {"logit_bias": {"99999999": 1}}, {"logit_bias": {"1": 200}}],
            "top_logprobs": [{"top_logprobs": 3}, {"logprobs": True, "top_logprobs": 21}],
            "stream_options": [{"stream_options": {"include_usage": True}}], "stream": [{"stream": "yes"}],
            "tool_choice": [{"tool_choice": "required"}, {"tool_choice": {"type": "function", "function": {"name": "no"}}, "tools": TOOLS}],
            "tools[0].function.name": [{"tools": [{"type": "function", "function": {}}]}],
            "response_format.type": [{"response_format": {"type": "xml"}}],
            "response_format.json_schema.schema": [{"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}}],
            "audio": [{"audio": {"voice": "x"}}], "prompt_logprobs": [{"prompt_logprobs": 1, "stream": True}, {"prompt_logprobs": 21}, {"prompt_logprobs": "a"}],
            "reasoning_effort": [{"reasoning_effort": "a lot"}], "model": [{"model": "../../etc/passwd"}, {"model": "gpt-4o"}],
            "modalities": [{"modalities": ["audio"]}], "mirostat": [{"mirostat": 2}], "grammar": [{"grammar": "root ::= a"}],
        }
        for param, bodies in cases.items():
            for body in bodies:
                full = body if param.startswith("messages") else {**self.ask("Hello"), **body}
                got = self.post(PATH, json.dumps(full), status=404 if param == "model" else 400)
                self.assertEqual(got["error"]["param"], param, got)
                self.assertEqual(set(got["error"]), {"message", "type", "param", "code"})

    def test_a_prompt_beyond_the_context(self):
        got = self.post(PATH, self.ask("word " * 5000), status=400)["error"]
        self.assertEqual(got["code"], "context_length_exceeded")
        self.assertEqual(got["n_ctx"], 2048)
        self.assertGreater(got["n_prompt_tokens"], 5000)

    def test_a_full_queue_says_when_to_return(self):
        status, headers, data = self.server.request("POST", PATH, self.ask("full"))
        self.assertEqual(status, 429, data)
        self.assertGreater(int(headers["retry-after"]), 0)
        self.assertEqual(json.loads(data)["error"]["type"], "rate_limit_error")

    def test_failures(self):
        self.assertIn("broken", self.post(PATH, self.ask("breaks"), status=500)["error"]["message"])
        self.assertIn("broken", self.stream(PATH, self.ask("breaks"))[-1][1]["error"]["message"])

    def test_unknown_fields_and_large_limits_are_fine(self):
        self.post(PATH, self.ask("Hello", no_such_field={"a": 1}, max_tokens=32000, max_completion_tokens=100000))

    def test_the_last_message_is_continued(self):
        messages = [*USER, {"role": "assistant", "content": "one two "}]
        asked = {"messages": messages, "continue_final_message": True}
        self.assertTrue(self.post("/apply-template", asked)["prompt"].endswith("one two "))
        counted = self.post("/tokenize", asked)["count"]
        for more in ({}, {"add_generation_prompt": False}):
            self.assertEqual(self.post(PATH, {**asked, **more})["usage"]["prompt_tokens"], counted)
        self.assertNotEqual(self.post(PATH, {"messages": messages})["usage"]["prompt_tokens"], counted)
        for wrong in ({"add_generation_prompt": True}, {"continue_final_message": False, "add_generation_prompt": False},
                      {"messages": USER}, {"messages": [*USER, {"role": "assistant", "content": ""}]}):
            self.post(PATH, {**asked, **wrong}, status=400)

    def test_parts_of_text(self):
        body = {"messages": [{"role": role, "content": [{"type": "text", "text": "Hi"}]} for role in ("system", "user")]}
        self.post(PATH, body)
        image = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]}
        self.post(PATH, image, status=400)

    def test_models(self):
        status, _, data = self.server.request("GET", "/v1/models")
        self.assertEqual(status, 200)
        card = json.loads(data)["data"][0]
        self.assertEqual((card["id"], card["max_model_len"], card["context_length"]), ("fake", 2048, 2048))
        self.assertEqual(self.server.request("GET", "/v1/models/fake")[0], 200)
        self.assertEqual(self.server.request("GET", "/v1/models/..%2f..%2fetc")[0], 404)
        self.assertEqual(json.loads(self.server.request("GET", "/v1/models", headers={"anthropic-version": "x"})[2])["first_id"], "fake")


if __name__ == "__main__":
    unittest.main()

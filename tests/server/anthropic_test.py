# SPDX-License-Identifier: Apache-2.0
"""Anthropic's messages over a scripted model."""
import json
import unittest

from fake import FakeServerTest

PATH = "/v1/messages?beta=true"
CALL = {"id": "toolu_1", "name": "weather", "arguments": '{"city": "Oslo"}'}
TOOLS = [{"name": "weather", "description": "d", "input_schema": {"type": "object"}}, {"type": "web_search_20250305", "name": "web_search"}]


def put_together(events):
    """The message of a stream, as clients build it, and the order of its events."""
    order, blocks, message = [], [], None
    for name, data in events:
        assert name == data["type"], (name, data)
        order.append(name)
        if name == "message_start":
            message = data["message"]
        elif name == "content_block_start":
            assert data["index"] == len(blocks)
            blocks.append(dict(data["content_block"], json=""))
        elif name == "content_block_delta":
            block, delta = blocks[data["index"]], data["delta"]
            kind = delta["type"].removesuffix("_delta")
            if kind == "input_json":
                block["json"] += delta["partial_json"]
            else:
                block[kind] = block.get(kind, "") + delta[kind]
        elif name == "message_delta":
            message.update(data["delta"], usage={**message["usage"], **data["usage"]})
    for block in blocks:
        text = block.pop("json")
        if block["type"] == "tool_use":
            block["input"] = json.loads(text or "{}")
    message["content"] = blocks
    return message, order


class Messages(FakeServerTest):
    SCRIPT = [
        {"when": "think", "events": [{"reasoning": "Let me see."}, {"content": "It is so."}]},
        {"when": "call", "events": [{"content": "Looking."}, {"call": CALL}], "cached_tokens": 3},
        {"when": "silent", "events": []},
        {"when": "long", "events": [{"content": "cut"}], "finish_reason": "length"},
        {"when": "stopped", "events": [{"content": "ab"}], "stop_string": "END"},
        {"when": "breaks", "events": [{"content": "a"}], "fails": {"code": "internal", "message": "broken"}},
        {"when": "full", "refuses": {"code": "capacity", "message": "the queue is full"}},
    ]

    def ask(self, text, **more):
        return {"model": "fake", "max_tokens": 32000, "messages": [{"role": "user", "content": text}], **more}

    def test_whole_answers_and_streams_agree(self):
        reasons = {"Hello": "end_turn", "think": "end_turn", "call": "tool_use", "silent": "end_turn", "long": "max_tokens",
                   "stopped": "stop_sequence"}
        for text, reason in reasons.items():
            whole = self.post(PATH, self.ask(text, tools=TOOLS))
            message, order = put_together(self.stream(PATH, self.ask(text, tools=TOOLS)))
            self.assertEqual(whole["stop_reason"], reason)
            self.assertGreaterEqual(len(whole["content"]), 1)
            for key in ("role", "type", "model", "content", "stop_reason", "stop_sequence", "usage"):
                self.assertEqual(message[key], whole[key], (text, key))
            self.assertEqual(order[:2], ["message_start", "ping"])
            self.assertEqual(order[-2:], ["message_delta", "message_stop"])
        self.assertEqual(whole["stop_sequence"], "END")

    def test_counts(self):
        counted = self.post("/v1/messages/count_tokens", {"model": "fake", "messages": self.ask("call")["messages"]})["input_tokens"]
        usage = self.post(PATH, self.ask("call"))["usage"]
        self.assertEqual(usage["cache_read_input_tokens"], 3)
        self.assertEqual(usage["input_tokens"] + usage["cache_read_input_tokens"], counted)

    def test_blocks(self):
        body = self.ask("x")
        body["system"] = [{"type": "text", "text": "x-anthropic-billing-header: cch=1"}, {"type": "text", "text": "Be brief."}]
        body["messages"] = [
            {"role": "user", "content": [{"type": "text", "text": "weather?", "cache_control": {"type": "ephemeral"}}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "ok"},
                                              {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "sun"}]},
                                         {"type": "text", "text": "and now?"}]}]
        body["thinking"] = {"type": "adaptive"}
        body["output_config"] = {"effort": "high"}
        body["context_management"] = {"edits": []}
        self.assertEqual(self.post(PATH, body)["content"][0]["text"], "and now?")
        one = self.post("/v1/messages/count_tokens", body)
        body["system"][0]["text"] = "x-anthropic-billing-header: cch=2345678901234567890"
        self.assertEqual(self.post("/v1/messages/count_tokens", body), one)

    def test_a_prefilled_answer_is_continued(self):
        messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "one two"}]
        counted = self.post("/tokenize", {"messages": messages, "continue_final_message": True})["count"]
        for content in ("one two", [{"type": "text", "text": "one two"}]):
            messages[1]["content"] = content
            self.assertEqual(self.post(PATH, self.ask("x", messages=messages))["usage"]["input_tokens"], counted)
            self.assertEqual(self.post("/v1/messages/count_tokens", {"model": "fake", "messages": messages})["input_tokens"], counted)

    def test_errors(self):
        def error(body, status=400):
            got = self.post(PATH, body, status)
            self.assertEqual(got["type"], "error")
            return got["error"]["type"], got["error"]["message"]

        for body, says in (({"model": "fake", "max_tokens": 5}, "messages"), ({"model": "fake", "messages": []}, "messages"),
                           (self.ask("x", max_tokens=0), "max_tokens"), (self.ask("x", tool_choice={"type": "any"}), "tool_choice.type"),
                           (self.ask("x", tools=[{}]), "tools[0].name"), (self.ask("x", thinking={"type": "maybe"}), "thinking.type"),
                           (self.ask("x", messages=[{"role": "user", "content": [{"type": "image"}]}]), "messages[0].content[0].type"),
                           (self.ask("x", messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}]), "last message"),
                           (self.ask("x", container="c"), "container")):
            kind, message = error(body)
            self.assertEqual(kind, "invalid_request_error")
            self.assertIn(says, message)
        self.assertEqual(error(self.ask("x", model="no"), 404)[0], "not_found_error")
        self.assertEqual(error(self.ask("full"), 429)[0], "rate_limit_error")
        self.assertEqual(error(self.ask("breaks"), 500)[0], "api_error")
        self.assertIn("2048", error(self.ask("word " * 5000))[1])
        self.assertEqual(self.stream(PATH, self.ask("breaks"))[-1][0], "error")


if __name__ == "__main__":
    unittest.main()

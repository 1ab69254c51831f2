# SPDX-License-Identifier: Apache-2.0
"""Ollama's API over a scripted model."""
import json
import unittest

from fake import FakeServerTest

CALL = {"id": "call_1", "name": "weather", "arguments": '{"city": "Oslo"}'}


class Ollama(FakeServerTest):
    SCRIPT = [
        {"when": "think", "events": [{"reasoning": "Let me see."}, {"content": "It is so."}]},
        {"when": "call", "events": [{"content": "Looking."}, {"call": CALL}]},
        {"when": "long", "events": [{"content": "cut"}], "finish_reason": "length"},
        {"when": "breaks", "events": [{"content": "a"}], "fails": {"code": "internal", "message": "broken"}},
    ]

    def lines(self, path, body):
        status, headers, data = self.server.request("POST", path, body)
        self.assertEqual(status, 200, data)
        self.assertEqual(headers["content-type"], "application/x-ndjson")
        return [json.loads(line) for line in data.decode().splitlines()]

    def chat(self, text, **more):
        return {"model": "fake:latest", "messages": [{"role": "user", "content": text}], **more}

    def test_chats(self):
        for text in ("Hello there", "think", "call", "long"):
            whole = self.post("/api/chat", self.chat(text, stream=False, tools=[]))
            lines = self.lines("/api/chat", self.chat(text))
            last = lines[-1]
            self.assertTrue(last["done"] and not any(line["done"] for line in lines[:-1]))
            for key in ("content", "thinking"):
                self.assertEqual("".join(line["message"].get(key, "") for line in lines), whole["message"].get(key, ""))
            calls = [call for line in lines for call in line["message"].get("tool_calls", [])]
            self.assertEqual(calls, whole["message"].get("tool_calls", []))
            self.assertEqual(last["done_reason"], "length" if text == "long" else "stop")
            for key in ("total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"):
                self.assertIsInstance(last[key], int)
            self.assertGreaterEqual(last["total_duration"], sum(last[f"{part}_duration"] for part in ("load", "prompt_eval", "eval")))
            if text == "call":
                self.assertEqual(calls[0]["function"]["arguments"], {"city": "Oslo"})

    def test_generates(self):
        whole = self.post("/api/generate", {"model": "fake", "prompt": "Hello there", "stream": False, "raw": True})
        lines = self.lines("/api/generate", {"model": "fake", "prompt": "Hello there"})
        self.assertEqual("".join(line["response"] for line in lines), whole["response"])
        self.assertEqual(whole["response"], "Hello there")
        self.assertEqual(self.post("/api/generate", {"model": "fake"})["done_reason"], "load")
        self.assertEqual(self.post("/api/chat", {"model": "fake", "messages": [], "keep_alive": 0})["done_reason"], "unload")

    def test_options_and_forms(self):
        options = {"temperature": 0.5, "top_k": 3, "num_ctx": 512, "num_predict": 5, "stop": ["x"], "seed": 1, "repeat_penalty": 1.1}
        self.post("/api/chat", self.chat("a", stream=False, options=options, think="high", format="json", keep_alive="5m"))
        history = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "", "thinking": "t", "tool_calls": [
            {"function": {"name": "f", "arguments": {"a": 1}}}]}, {"role": "tool", "content": "r", "tool_name": "f"}]
        self.post("/api/chat", {"model": "fake", "messages": history, "stream": False})

    def test_an_answer_at_the_end_is_continued(self):
        history = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "one two"}]
        got = self.post("/api/chat", {"model": "fake", "messages": history, "stream": False})
        counted = self.post("/tokenize", {"messages": history, "continue_final_message": True})["count"]
        self.assertEqual(got["prompt_eval_count"], counted)

    def test_log_probabilities(self):
        body = self.chat("think", logprobs=True, top_logprobs=2)
        whole = self.post("/api/chat", {**body, "stream": False})["logprobs"]
        self.assertEqual("".join(entry["token"] for entry in whole), "It is so.")
        self.assertTrue(all(entry["logprob"] == -0.5 and len(entry["top_logprobs"]) == 2 for entry in whole))
        self.assertEqual([entry for line in self.lines("/api/chat", body) for entry in line.get("logprobs", [])], whole)
        chat = self.post("/v1/chat/completions", {**body, "model": "fake"})
        self.assertEqual(chat["choices"][0]["logprobs"]["content"], whole)
        self.assertNotIn("logprobs", self.post("/api/chat", self.chat("think", stream=False)))
        self.post("/api/chat", self.chat("a", top_logprobs=2), 400)
        self.post("/api/generate", {"model": "fake", "prompt": "a", "logprobs": True, "top_logprobs": 21}, 400)

    def test_a_text_between_two_others_needs_its_tokens(self):
        self.assertIn("suffix", self.post("/api/generate", {"model": "fake", "prompt": "a", "suffix": "b"}, 400)["error"])

    def test_facts(self):
        self.assertEqual(json.loads(self.server.request("GET", "/api/tags")[2])["models"][0]["name"], "fake")
        self.assertEqual(json.loads(self.server.request("GET", "/api/ps")[2])["models"][0]["context_length"], 2048)
        self.assertIn("version", json.loads(self.server.request("GET", "/api/version")[2]))
        self.assertIn("completion", self.post("/api/show", {"model": "fake"})["capabilities"])

    def test_errors(self):
        for path, body, status in (("/api/chat", {"model": "no"}, 404), ("/api/chat", {}, 400), ("/api/show", {"model": "no"}, 404),
                                   ("/api/chat", self.chat("a", options={"top_k": "x"}), 400), ("/api/chat", self.chat("a", think=5), 400),
                                   ("/api/chat", self.chat("a", format=5), 400), ("/api/pull", {"model": "x"}, 403), ("/api/push", {"model": "x"}, 501),
                                   ("/api/generate", {"model": "fake", "prompt": "a", "images": ["x"]}, 400),
                                   ("/api/chat", self.chat("breaks", stream=False), 500), ("/api/no-such", {}, 404)):
            self.assertEqual(list(self.post(path, body, status)), ["error"])
        self.assertIn("broken", self.lines("/api/chat", self.chat("breaks"))[-1]["error"])


if __name__ == "__main__":
    unittest.main()

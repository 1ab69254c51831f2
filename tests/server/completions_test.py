# SPDX-License-Identifier: Apache-2.0
"""OpenAI's completions, scores and tokens over a scripted model."""
import json
import unittest

from fake import FakeServerTest

PATH = "/v1/completions"


class Completions(FakeServerTest):
    def test_texts_and_tokens(self):
        got = self.post(PATH, {"prompt": "Once"})
        self.assertEqual(got["object"], "text_completion")
        self.assertEqual(got["choices"][0]["text"], "Once")
        tokens = self.post("/tokenize", {"content": "Once"})["tokens"]
        for prompt in (tokens, [tokens, tokens], ["Once", "upon"]):
            got = self.post(PATH, {"prompt": prompt, "n": 2})
            count = 2 if prompt == tokens else 4
            self.assertEqual([choice["index"] for choice in got["choices"]], list(range(count)))
        self.assertEqual([choice["text"] for choice in got["choices"]], ["Once", "Once", "upon", "upon"])

    def test_streams(self):
        chunks = self.stream(PATH, {"prompt": ["Once upon", "a time"], "stream_options": {"include_usage": True}})
        texts = {0: "", 1: ""}
        for _, chunk in chunks[:-1]:
            for choice in chunk["choices"]:
                texts[choice["index"]] += choice["text"]
        self.assertEqual(texts, {0: "Once upon", 1: "a time"})
        self.assertGreater(chunks[-2][1]["usage"]["prompt_tokens"], 0)

    def test_echo_scores_the_prompt(self):
        tokens = self.post("/tokenize", {"content": "Once upon a time"})["tokens"]
        for limit in (0, 1):
            got = self.post(PATH, {"prompt": [tokens], "echo": True, "logprobs": 1, "max_tokens": limit, "temperature": 0})
            choice = got["choices"][0]
            lists = choice["logprobs"]
            self.assertTrue(choice["text"].startswith("Once upon a time"))
            self.assertEqual(lists["token_logprobs"][0], None)
            self.assertEqual(lists["top_logprobs"][0], None)
            self.assertEqual(lists["token_logprobs"][1:len(tokens)], [-0.5] * (len(tokens) - 1))
            self.assertEqual("".join(lists["tokens"][:len(tokens)]), "Once upon a time")
            self.assertEqual(lists["text_offset"][0], 0)
            self.assertEqual(got["usage"]["prompt_tokens"] if limit == 0 else len(tokens), len(tokens))

    def test_prompt_logprobs(self):
        got = self.post(PATH, {"prompt": ["Once upon", "a time"], "prompt_logprobs": 0, "n": 2})
        for choice, text in zip(got["choices"], ("Once upon", "Once upon", "a time", "a time")):
            tokens = self.post("/tokenize", {"prompt": text})["tokens"]
            self.assertEqual([None if at is None else list(at) for at in choice["prompt_logprobs"]],
                             [None, *([str(token)] for token in tokens[1:])])
        self.assertNotIn("prompt_logprobs", self.post(PATH, {"prompt": "Once"})["choices"][0])

    def test_errors_name_the_field(self):
        for param, body in {"prompt": {}, "max_tokens": {"prompt": "a", "max_tokens": 0}, "suffix": {"prompt": "a", "suffix": "b"},
                            "best_of": {"prompt": "a", "best_of": 3}, "logprobs": {"prompt": "a", "logprobs": 99},
                            "echo": {"prompt": "a", "echo": True, "stream": True}}.items():
            self.assertEqual(self.post(PATH, body, status=400)["error"]["param"], param)
        for prompt in ([99999999], [-1], [[]], [], 5, ["a", 5], {"a": 1}):
            self.assertEqual(self.post(PATH, {"prompt": prompt}, status=400)["error"]["param"], "prompt", prompt)

    def test_prompts_are_rendered_as_tokens(self):
        tokens = [self.post("/tokenize", {"prompt": text})["tokens"] for text in ("Once", "a time")]
        got = self.post("/v1/completions/render", {"prompt": ["Once", "a time"]})
        self.assertEqual(got, [{"token_ids": one} for one in tokens])
        messages = [{"role": "user", "content": "Hello"}]
        got = self.post("/v1/chat/completions/render", {"messages": messages, "stream": True})
        self.assertEqual(got, {"token_ids": self.post("/tokenize", {"messages": messages})["tokens"]})
        self.post("/v1/chat/completions/render", {}, 400)

    def test_tokens_and_templates(self):
        tokens = self.post("/tokenize", {"content": "Hello there"})["tokens"]
        self.assertEqual(self.post("/detokenize", {"tokens": tokens})["content"], "Hello there")
        pieces = self.post("/tokenize", {"content": "Hello there", "with_pieces": True})["tokens"]
        self.assertEqual("".join(piece["piece"] for piece in pieces), "Hello there")
        got = self.post("/tokenize", {"prompt": "Hello there", "add_special_tokens": False})
        self.assertEqual((got["tokens"], got["count"], got["max_model_len"]), (tokens, len(tokens), 2048))
        messages = [{"role": "user", "content": "Hi"}]
        prompt = self.post("/apply-template", {"messages": messages})["prompt"]
        self.assertIn("Hi", prompt)
        counted = self.post("/tokenize", {"messages": messages})["count"]
        self.assertEqual(counted, self.post("/tokenize", {"prompt": prompt, "add_special_tokens": False})["count"])
        for path, body in (("/tokenize", {}), ("/detokenize", {"tokens": [10**9]}), ("/detokenize", {"tokens": "a"}),
                           ("/apply-template", {})):
            self.post(path, body, status=400)

    def test_scores(self):
        got = self.post("/v1/score", {"prompt": "Once", "completion": " upon"})
        self.assertIn("base", got["views"])
        got = self.post("/v1/score", {"records": [{"text": "Once"}, {"text": "upon a time"}]})
        self.assertEqual(len(got["results"]), 2)
        self.post("/v1/score", {"text": "a", "views": ["no-such"]}, status=400)

    def test_facts(self):
        for path in ("/props", "/version", "/health", "/ready", "/load", "/"):
            self.assertEqual(self.server.request("GET", path)[0], 200, path)
        self.post(PATH, {"prompt": "Once"})
        text = self.server.request("GET", "/metrics")[2].decode()
        self.assertIn('vllm:request_success_total{model_name="fake",engine="0",finished_reason="stop"} 1\n', text)
        self.assertIn('saker_num_requests_running{model_name="fake",engine="0"} 0\n', text)


if __name__ == "__main__":
    unittest.main()

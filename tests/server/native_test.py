# SPDX-License-Identifier: Apache-2.0
"""llama-server's own routes over a scripted model: /completion, and /infill as editors ask it."""
import json
import pathlib
import shutil
import tempfile
import unittest

from fake import FakeServerTest, Server

DEMO = pathlib.Path(__file__).resolve().parents[2] / "models/demo"
MIDDLE = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
FILES = ("<|repo_name|>", "<|file_sep|>")
TIMINGS = {"cache_n", *(f"{kind}_{what}" for kind in ("prompt", "predicted") for what in ("n", "ms", "per_token_ms", "per_second"))}


class Completion(FakeServerTest):
    SCRIPT = [{"when": "stops", "events": [{"content": "It"}], "stop_string": "!"},
              {"when": "is cut", "events": [{"content": "It"}], "finish_reason": "length"}]

    def test_answers(self):
        got = self.post("/completion", {"prompt": "Once upon", "n_predict": 5, "return_tokens": True, "n_probs": 2})
        self.assertEqual((got["content"], got["stop"], got["stop_type"], got["truncated"]), ("Once upon", True, "eos", False))
        self.assertEqual(got["prompt"], "Once upon")
        self.assertEqual(set(got["timings"]), TIMINGS)
        self.assertEqual(len(got["tokens"]), got["tokens_predicted"])
        self.assertEqual([one["id"] for one in got["completion_probabilities"]], got["tokens"])
        self.assertEqual(len(got["completion_probabilities"][0]["top_logprobs"]), 2)
        for prompt, kind, word in (("stops", "word", "!"), ("is cut", "limit", "")):
            got = self.post("/completion", {"prompt": prompt})
            self.assertEqual((got["stop_type"], got["stopping_word"], got["tokens"]), (kind, word, []))

    def test_lists_and_tokens(self):
        tokens = self.post("/tokenize", {"content": "Once upon"})["tokens"]
        self.assertEqual(self.post("/completion", {"prompt": tokens})["tokens_evaluated"], len(tokens))
        for prompts in (["Once", "upon"], [tokens], ["Once"]):
            got = self.post("/completion", {"prompt": prompts})
            self.assertEqual([one["index"] for one in got], list(range(len(prompts))))
            self.assertEqual(got[0]["content"], "Once" if "Once" in prompts else "")

    def test_streams(self):
        events = [data for _, data in self.stream("/completion", {"prompt": "Once upon a time", "return_tokens": True})]
        self.assertEqual("".join(event["content"] for event in events), "Once upon a time")
        self.assertEqual([event["stop"] for event in events], [False] * (len(events) - 1) + [True])
        self.assertEqual(sum(len(event["tokens"]) for event in events), events[-1]["tokens_predicted"])

    def test_a_prompt_alone_is_kept(self):
        got = self.post("/completion", {"prompt": "Once", "n_predict": 0, "n_probs": 1, "return_tokens": True})
        self.assertEqual((got["content"], got["tokens"], got["tokens_predicted"]), ("", [], 0))
        self.assertEqual(got["completion_probabilities"], [])
        events = self.stream("/completion", {"prompt": "Once", "n_predict": 0})
        self.assertEqual([data["content"] for _, data in events], [""])

    def test_response_fields(self):
        got = self.post("/completion", {"prompt": "Once", "response_fields": ["content", "timings/predicted_n", "no/such", "content/a", "/", ""]})
        self.assertEqual(set(got), {"content", "timings/predicted_n"})

    def test_what_is_refused(self):
        for body in ({}, {"prompt": []}, {"prompt": ["a", 1]}, {"prompt": {"a": 1}}, {"prompt": [2**70]}, {"prompt": [-1]},
                     {"prompt": "a", "n_predict": -2}, {"prompt": "a", "samplers": ["mirostat"]}, {"prompt": "a", "grammar": "root ::= \"a\""},
                     {"prompt": "a", "lora": [{"id": 0}]}, {"prompt": "a", "response_fields": 5}, {"prompt": "a", "n_probs": 1000},
                     {"prompt": ["a", "b"], "stream": True}):
            error = self.post("/completion", body, 400)["error"]
            self.assertEqual(error["type"], "invalid_request_error", body)
        self.post("/completion", {"prompt": "a", "model": "none"}, 404)
        for samplers in ([], ["top_k", "top_p", "infill"], ["penalties", "dry", "typ_p", "min_p", "xtc", "temperature"]):
            self.post("/completion", {"prompt": "a", "samplers": samplers})


class Infill(unittest.TestCase):
    def serve(self, *tokens):
        """A server whose model has these tokens, too."""
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder)
        shutil.copytree(DEMO, folder / "texts")
        path = folder / "texts/tokenizer.json"
        tokenizer = json.loads(path.read_text())
        for token in tokens:
            tokenizer["added_tokens"].append({**tokenizer["added_tokens"][0], "id": 2048 + tokens.index(token), "content": token, "special": False})
        path.write_text(json.dumps(tokenizer))
        self.server = Server({"texts": str(folder / "texts")})
        self.addCleanup(self.server.stop)

    def infill(self, status=200, **body):
        got, _, data = self.server.request("POST", "/infill", body)
        self.assertEqual(got, status, data)
        return json.loads(data)

    def test_between_two_texts(self):
        self.serve(*MIDDLE)
        got = self.infill(input_prefix="def f(", input_suffix="): pass", prompt="a, ", n_predict=8, top_k=40, top_p=0.9, stream=False,
                          samplers=["top_k", "top_p", "infill"], t_max_prompt_ms=500, t_max_predict_ms=1000, cache_prompt=True, n_indent=4,
                          response_fields=["content", "prompt", "timings/prompt_n", "truncated"])
        self.assertEqual(got["prompt"], "<|fim_prefix|>def f(a, <|fim_suffix|>): pass<|fim_middle|>")
        self.assertEqual(set(got), {"content", "prompt", "timings/prompt_n", "truncated"})
        extra = [{"filename": "a.py", "text": "one"}, {"text": "two\n"}]
        got = self.infill(input_prefix="x", input_suffix="", input_extra=extra)
        self.assertEqual(got["prompt"], "\n\n--- snippet ---\n\none\n\n--- snippet ---\n\ntwo\n\n\n<|fim_prefix|>x<|fim_suffix|><|fim_middle|>")

    def test_files_of_a_repository(self):
        self.serve(*MIDDLE, *FILES)
        got = self.infill(input_prefix="x", input_suffix="y", input_extra=[{"filename": "a.py", "text": "one"}, {"text": "two\n"}])
        self.assertEqual(got["prompt"], "<|repo_name|>project\n<|file_sep|>a.py\none\n<|file_sep|>tmp\ntwo\n<|file_sep|>file\n"
                                        "<|fim_prefix|>x<|fim_suffix|>y<|fim_middle|>")
        self.assertNotIn("repo_name", self.infill(input_prefix="x", input_suffix="y")["prompt"])

    def test_what_is_refused(self):
        self.serve(*MIDDLE)
        for body in ({"input_prefix": "a"}, {"input_suffix": "a"}, {"input_prefix": 1, "input_suffix": "a"},
                     {"input_prefix": "a", "input_suffix": "b", "input_extra": [{"filename": "a"}]},
                     {"input_prefix": "a", "input_suffix": "b", "input_extra": {"text": "a"}},
                     {"input_prefix": "a", "input_suffix": "b", "prompt": [1]}):
            self.infill(400, **body)

    def test_a_model_without_the_tokens(self):
        self.serve()
        self.assertIn("no tokens", self.infill(400, input_prefix="a", input_suffix="b")["error"]["message"])


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""A model folder without tokenizer.json: ids go in and out, text is refused in one line."""
import json
import unittest

from saker import DEMO, SakerTest, run


class NoTokenizer(SakerTest):
    def setUp(self):
        super().setUp()
        self.model = self.demo_copy()
        (self.model / "tokenizer.json").unlink()

    def chat_ids(self):
        """The ids of one question, as the model with its tokenizer takes them, and its answer."""
        got = self.json("generate", DEMO, "-p", "hello", "--chat", "--temp", "0", "--json")
        return ",".join(map(str, got["prompt_tokens"])), got

    def test_generate_gives_the_same_ids_and_no_text(self):
        ids, expected = self.chat_ids()
        got = self.json("generate", self.model, "--tokens", ids, "--logprobs", "2", "--json")
        self.assertEqual(got["prompt_tokens"], expected["prompt_tokens"])
        self.assertEqual(got["tokens"], expected["tokens"])
        self.assertEqual(got["text"], "")
        self.assertEqual(len(got["logprobs"]), len(got["tokens"]))

    def test_stop_ids_come_from_the_configuration(self):
        ids, expected = self.chat_ids()
        self.assertEqual(expected["finish_reason"], "stop")
        for file in ("generation_config.json", "tokenizer_config.json"):
            (self.model / file).unlink()  # config.json is left.
            got = self.json("generate", self.model, "--tokens", ids, "--json")
            self.assertEqual((got["tokens"], got["finish_reason"]), (expected["tokens"], "stop"))
        (self.model / "generation_config.json").write_text('{"eos_token_id": %d}' % expected["tokens"][2])
        got = self.json("generate", self.model, "--tokens", ids, "--json")
        self.assertEqual((got["tokens"], got["finish_reason"]), (expected["tokens"][:2], "stop"))

    def test_records(self):
        lines = ['{"id": 1, "tokens": [5, 6], "max_tokens": 3}', '{"id": 2, "prompt": "hi"}',
                 '{"id": 3, "messages": [{"role": "user", "content": "hi"}]}',
                 '{"id": 4, "tokens": [5], "stop": "x"}']
        done = run("generate", self.model, "-f", self.write("r.jsonl", "\n".join(lines)))
        got = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(done.returncode, 1)
        self.assertEqual([len(g["tokens"]) for g in got[:1]], [3])
        for refused in got[1:]:
            self.assertEqual(refused["error"]["code"], "unsupported")
            self.assertIn("tokenizer.json", refused["error"]["message"])

    def test_score(self):
        args = ["--tokens", "5,6,7,8", "--prompt-tokens", "3,4", "--top-k", "3"]
        self.assertEqual(self.json("score", self.model, *args, "--json"), self.json("score", DEMO, *args, "--json"))
        rows = self.ok("score", self.model, *args).decode().splitlines()
        self.assertEqual([row.split()[1] for row in rows[:-1]], ["3", "4", "5", "6", "7", "8"])
        path = self.write("r.jsonl", '{"id": 1, "tokens": [5, 6, 7]}\n')
        self.assertEqual(self.ok("score", self.model, "-f", path), self.ok("score", DEMO, "-f", path))

    def test_bench(self):
        self.assertIn("tokens/s", self.ok("bench", self.model, "-p", "8", "-n", "4", "-r", "1").decode())

    def test_text_is_refused(self):
        for args in (["generate", "--tokens", "5,6"], ["generate", "-p", "hi", "--json"],
                     ["generate", "-p", "hi", "--chat", "--json"],
                     ["generate", "--tokens", "5", "--stop", "x", "--json"], ["score", "--text", "hi", "--json"],
                     ["score", "--prompt", "a", "--completion", "b", "--json"], ["run", "-p", "hi"]):
            with self.subTest(args):
                self.fails(args[0], self.model, *args[1:], says="tokenizer.json")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Files beside tokenizer.json: tokens that only they name, and what happens when they are damaged."""
import json
import unittest

from saker import DEMO, SakerTest, run

FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
CHAT = ("-p", "hello", "--chat", "--temp", "0", "--json")


class TokenizerFiles(SakerTest):
    def setUp(self):
        super().setUp()
        self.model = self.demo_copy()

    def change(self, name, **members):
        path = self.model / name
        values = {**json.loads(path.read_text()), **members}
        path.write_text(json.dumps({key: value for key, value in values.items() if value != "drop"}))

    def no_ends_of_the_model(self):
        self.change("config.json", eos_token_id="drop")
        (self.model / "generation_config.json").unlink()

    def warns(self, file, *args):
        """stdout of a run that succeeds and names the file in one line on stderr; answers may be cut."""
        done = run(*args)
        message = done.stderr.decode()
        self.assertEqual(done.returncode, 0, message)
        lines = [line for line in message.splitlines() if "was cut after" not in line]
        self.assertEqual(len(lines), 1, message)
        self.assertIn(str(self.model / file), lines[0])
        return done.stdout

    def test_tokens_that_only_they_name(self):
        expected = self.json("generate", DEMO, *CHAT)
        self.assertEqual(expected["finish_reason"], "stop")
        self.no_ends_of_the_model()
        self.change("tokenizer.json", added_tokens=[])
        listed = {str(i): {"content": text, **FLAGS} for i, text in enumerate(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])}
        self.change("tokenizer_config.json", added_tokens_decoder=listed)
        self.assert_same_answer(expected)
        self.change("tokenizer_config.json", added_tokens_decoder="drop", additional_special_tokens=["<|im_start|>"])
        self.assert_same_answer(expected)
        self.change("tokenizer_config.json", additional_special_tokens="drop", eos_token="drop")
        (self.model / "special_tokens_map.json").write_text('{"eos_token": {"content": "<|im_end|>"}}')
        (self.model / "added_tokens.json").write_text('{"<|im_start|>": 1}')
        self.assert_same_answer(expected)

    def assert_same_answer(self, expected):
        got = self.json("generate", self.model, *CHAT)
        for key in ("prompt_tokens", "tokens", "text", "finish_reason"):
            self.assertEqual(got[key], expected[key])

    def test_ends_that_the_tokenizers_class_knows(self):
        self.no_ends_of_the_model()
        self.change("tokenizer_config.json", eos_token="drop", tokenizer_class="GPT2Tokenizer")
        tokens = self.json("generate", self.model, "--tokens", "5,6", "--max-tokens", "4", "--logit-bias", '{"0": 100}', "--json")
        self.assertEqual((tokens["finish_reason"], tokens["text"]), ("stop", ""))

    def test_damage_stops_only_who_needs_the_file(self):
        ids = ",".join(map(str, self.json("generate", DEMO, *CHAT)["prompt_tokens"]))
        for content in ("", "{", "[]", '{"chat_template": "x",}'):
            (self.model / "tokenizer_config.json").write_text(content)
            with self.subTest(content):
                file = "tokenizer_config.json"
                self.assertEqual(self.warns(file, "generate", self.model, "--tokens", ids), self.ok("generate", DEMO, "--tokens", ids))
                self.assertEqual(self.warns(file, "score", self.model, "--tokens", ids), self.ok("score", DEMO, "--tokens", ids))
                self.assertEqual(self.warns(file, "tokenize", self.model, "-t", "a b"), self.ok("tokenize", DEMO, "-t", "a b"))
                self.warns(file, "generate", self.model, "-p", "Once", "--max-tokens", "2")
                path = str(self.model / file)
                self.fails("generate", self.model, *CHAT, says=path)
                self.fails("run", self.model, "-p", "hi", says=path)
                self.fails("template", self.model, "--messages", self.write("m.json", '[{"role": "user", "content": "hi"}]'), says=path)
                self.ok("inspect", self.model)

    def test_a_damaged_part_is_left_out(self):
        expected = self.json("generate", DEMO, *CHAT)
        for change in ({"unk_token": 3}, {"added_tokens_decoder": {"x": 1}}, {"additional_special_tokens": 1}, {"add_bos_token": "no"}):
            self.change("tokenizer_config.json", **change)
            got = json.loads(self.warns("tokenizer_config.json", "generate", self.model, *CHAT))
            self.assertEqual((got["prompt_tokens"], got["text"]), (expected["prompt_tokens"], expected["text"]))
            self.change("tokenizer_config.json", **dict.fromkeys(change, "drop"))
        for file in ("special_tokens_map.json", "added_tokens.json"):
            (self.model / file).write_text("{")
            got = json.loads(self.warns(file, "generate", self.model, *CHAT))
            self.assertEqual((got["prompt_tokens"], got["text"]), (expected["prompt_tokens"], expected["text"]))
            (self.model / file).unlink()


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Drafts: `--draft`, `--speculate`, `--draft-depth`: answers are those without them."""
import json
import shutil
import unittest

from saker import DEMO, SakerTest, run
from generate_test import answer

PROMPT = "Tell me about a model that runs on a small machine, and about a machine that runs a small model."


class Drafts(SakerTest):
    def generate(self, *args, prompt=PROMPT):
        return self.json("generate", DEMO, "-p", prompt, "--max-tokens", "60", "--logprobs", "2", "--json", *args)

    def test_answers_are_those_without_drafts(self):
        for sampling in ([], ["--temp", "0.9", "--seed", "5", "--top-p", "0.9", "--repetition-penalty", "1.2"]):
            plain = self.generate(*sampling)
            self.assertEqual(plain["stats"]["rounds"], 0)
            for drafts in (
                ["--speculate", "prompt-lookup"],
                ["--speculate", "prompt-lookup", "--draft-depth", "7"],
                ["--draft", DEMO],
                ["--draft", DEMO, "--draft-depth", "4"],
                ["--draft", DEMO, "--kv-bits", "16", "--draft-depth", "auto", "--speculate", "draft"],
            ):
                got = self.generate(*sampling, *drafts)
                self.assertEqual(answer(got), answer(plain), drafts)

    def test_a_draft_model_like_the_model_is_always_right(self):
        stats = self.generate("--draft", DEMO, "--draft-depth", "4", "--ignore-eos")["stats"]
        self.assertGreater(stats["drafted"], 30)
        self.assertEqual(stats["accepted"], stats["drafted"])
        self.assertLessEqual(stats["rounds"], 15)

    def test_none_and_depth_zero_draft_nothing(self):
        for drafts in (["--speculate", "none"], ["--draft-depth", "0"]):
            self.assertEqual(self.generate("--draft", DEMO, *drafts)["stats"]["rounds"], 0)

    def test_statistics_for_people(self):
        done = run("generate", DEMO, "-p", PROMPT, "--draft", DEMO, "--draft-depth", "3", "--max-tokens", "30", "-v",
                   "--ignore-eos")
        self.assertIn("draft tokens right in", done.stderr.decode())

    def test_records_with_options_of_their_own(self):
        records = [
            {"id": i, "prompt": PROMPT[i:], "speculate": how, "draft_depth": depth, "temp": 0.7, "seed": i}
            for i, (how, depth) in enumerate([("none", 0), ("prompt-lookup", 5), ("draft", "auto"), ("draft", 3)])
        ]
        path = self.write("in.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        lines = self.ok("generate", DEMO, "-f", path, "--draft", DEMO, "--max-tokens", "25", "--json").decode()
        for record, line in zip(records, lines.splitlines()):
            alone = self.json("generate", DEMO, "-p", record["prompt"], "--temp", "0.7", "--seed", record["id"],
                              "--max-tokens", "25", "--json")
            self.assertEqual(answer(json.loads(line)), answer(alone))

    def test_refusals(self):
        self.fails("generate", DEMO, "-p", "x", "--speculate", "draft", says="draft model")
        self.fails("generate", DEMO, "-p", "x", "--speculate", "magic", says="expected none, prompt-lookup or draft")
        self.fails("generate", DEMO, "-p", "x", "--draft-depth", "65", says="0 to 64")
        self.fails("generate", DEMO, "-p", "x", "--draft-depth", "-3", says="0 to 64")
        self.fails("generate", DEMO, "-p", "x", "--draft-depth", "many", says="expected an integer or auto", code=2)
        self.fails("generate", DEMO, "-p", "x", "--draft", self.folder / "none", says="none")
        self.fails("generate", DEMO, "-p", "x", "--draft", self.folder, says="no model folder")

    def test_a_draft_of_other_tokens_is_refused(self):
        other = self.folder / "other"
        shutil.copytree(DEMO, other)
        tokenizer = json.loads((other / "tokenizer.json").read_text())
        vocab = tokenizer["model"]["vocab"]
        first, second = [piece for piece, _ in sorted(vocab.items(), key=lambda item: item[1])][40:42]
        vocab[first], vocab[second] = vocab[second], vocab[first]
        (other / "tokenizer.json").write_text(json.dumps(tokenizer))
        message = self.fails("generate", DEMO, "-p", "x", "--draft", other, says="token")
        self.assertIn(str(other), message)
        # Without a tokenizer only the sizes are compared.
        (other / "tokenizer.json").unlink()
        self.ok("generate", DEMO, "-p", "x", "--max-tokens", "3", "--draft", other)


if __name__ == "__main__":
    unittest.main()

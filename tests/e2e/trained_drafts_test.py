# SPDX-License-Identifier: Apache-2.0
"""The bundled model's own draft and those of models/demo-drafts, on prompts that their training held out."""
import json
import unittest

from saker import DEMO, ROOT, SakerTest

DRAFTS = ROOT / "models" / "demo-drafts"
# Options that choose a draft: without any, the bundled model uses the one that it brings.
WAYS = {"dflash": [], "mtp": ["--draft", DRAFTS / "mtp"], "eagle3": ["--draft", DRAFTS / "eagle3"], "small": ["--draft", DRAFTS / "small"]}
HELD_OUT = [json.loads(line) for line in (ROOT / "tools/demo_model/heldout.jsonl").read_text().splitlines()]
DEPTH = 7


def tokens_per_round(answers):
    """The end of an answer is a token too; its first one comes from the prompt's pass."""
    tokens = sum(len(answer["tokens"]) for answer in answers)
    return tokens / (tokens - sum(answer["stats"]["accepted"] for answer in answers))


class TrainedDraftsTest(SakerTest):
    def answers(self, *args):
        records = [{"id": row["id"], "messages": [{"role": "user", "content": row["prompt"]}]} for row in HELD_OUT]
        path = self.write("in.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        lines = self.ok("generate", DEMO, "-f", path, "--json", "--logprobs", "1", "--max-tokens", "80", *args)
        return [json.loads(line) for line in lines.decode().splitlines()]

    def test_they_change_no_answer_and_are_mostly_right(self):
        plain = self.answers("--draft", "none")
        lookup = self.answers("--speculate", "prompt-lookup", "--draft-depth", DEPTH)
        for name, least in (("dflash", 3.3), ("mtp", 4.4), ("eagle3", 2.8), ("small", 3.2)):
            for batch in (1, 8):
                got = self.answers(*WAYS[name], "--draft-depth", DEPTH, "--batch", batch)
                for ours, theirs in zip(got, plain, strict=True):
                    self.assertEqual((ours["tokens"], ours["logprobs"]), (theirs["tokens"], theirs["logprobs"]), name)
                self.assertGreater(tokens_per_round(got), least, name)
                self.assertGreater(tokens_per_round(got), tokens_per_round(lookup), name)

    def test_the_bundled_model_uses_its_own(self):
        ask = ["-p", "What does a fox eat?"]
        for model in ([], [DEMO]):
            got = self.json("generate", *model, *ask, "--chat", "--draft-depth", 4, "--json")
            self.assertEqual(got["stats"]["drafter"], "dflash")
            self.assertGreater(got["stats"]["accepted"], 0)
            plain = self.json("generate", *model, *ask, "--chat", "--draft", "none", "--json")
            self.assertEqual(plain["stats"]["drafter"], "none")
            self.assertEqual(got["tokens"], plain["tokens"])
            self.assertEqual(self.ok("run", *model, *ask), self.ok("run", *model, *ask, "--draft", "none"))


if __name__ == "__main__":
    unittest.main()

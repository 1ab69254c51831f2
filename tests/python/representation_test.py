# SPDX-License-Identifier: Apache-2.0
"""What results print as, and errors in Python's words."""

import unittest

from demo import DEMO, DemoTest

import saker


class Representation(DemoTest):
    def test_results_say_what_they_hold(self):
        answer = self.model.generate("Once", max_tokens=2, logprobs=1)
        score = self.model.score([saker.ScoreRequest(prompt="Once", top_k=3)])[0]
        for result, parts in (
            (self.model, [str(DEMO), "'llama'" if self.model.facts.model_type == "llama" else self.model.facts.model_type]),
            (self.model.facts, ["ModelFacts(", "vocab_size=", "load_s="]),
            (answer.stats, ["GenerateStats(", "generation_tokens=2"]),
            (answer.logprobs[0], ["TokenLogprob(", "logprob=-"]),
            (score, ["ScoreResult(", "views=[ViewScores(view='base'", "next=NextDistribution(", "token_ids=<int"]),
            (self.model.score_stats, ["ScoreStats(", "forward_passes="]),
            (self.model.prefix_cache_stats, ["PrefixCacheStats(", "lookups="]),
            (self.model.differences("Once upon"), ["Differences(", "ViewDifference(view='ft'"]),
        ):
            for part in parts:
                self.assertIn(part, repr(result))
            self.assertLess(len(repr(result)), 3000)
        self.assertIn("tokens=<int", repr(self.model.score([saker.ScoreRequest(text="a " * 2000)])[0]))

    def test_inspect(self):
        found = saker.inspect(DEMO, kv_bits=8)
        self.assertEqual((found["kind"], found["runnable"], found["path"]), ("model", True, str(DEMO)))
        self.assertEqual(found["model"]["vocab_size"], self.model.facts.vocab_size)
        self.assertEqual(len(found["caches"]), found["model"]["layers"])
        self.assertIn("embed_tokens", " ".join(tensor["name"] for tensor in saker.inspect(DEMO / "model.safetensors")["tensors"]))
        with self.assertRaises(saker.NotFoundError):
            saker.inspect("/nowhere")
        with self.assertRaises(saker.CorruptDataError):
            saker.inspect(__file__)

    def test_help_names_what_there_is(self):
        for name in saker.__all__:
            if callable(getattr(saker, name)):
                self.assertTrue(getattr(saker, name).__doc__, name)
        for name in ("load", "pull", "convert", "inspect", "generate", "stream", "logprob_of", "forward_logits", "set_log_level"):
            self.assertIn(name, saker.__doc__)

    def test_a_prompt_of_another_type(self):
        for prompt in (5, 1.5, None, b"text", {"role": "user"}, iter([1])):
            with self.assertRaisesRegex(TypeError, f"prompt: got {type(prompt).__name__}, expected a text, token ids or"):
                self.model.generate(prompt)


if __name__ == "__main__":
    unittest.main()

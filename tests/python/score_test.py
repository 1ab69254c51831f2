# SPDX-License-Identifier: Apache-2.0
"""Scores from Python: against generated log-probabilities, against each other, alone and in batches."""

import unittest

import numpy as np
from demo import DemoTest

import saker

PROMPT, COMPLETION = "What does a fox eat?", " A fox eats mice and berries."


class Score(DemoTest):
    def setUp(self):
        self.base = self.model.base()

    def test_a_completion_scores_what_generating_it_says(self):
        answer = self.base.generate(PROMPT, max_tokens=8, logprobs=0, ignore_eos=True)
        prompt = self.model.encode(PROMPT)
        request = saker.ScoreRequest(tokens=prompt + answer.tokens, prompt_tokens=[])
        (whole,) = self.model.score([request], views=["base"])
        logprobs = whole.views[0].logprobs
        self.assertTrue(np.isnan(logprobs[0]))
        self.assertEqual(list(logprobs[len(prompt) :]), [each.logprob for each in answer.logprobs])

    def test_rolling_is_the_sum_of_completions(self):
        text = PROMPT + COMPLETION
        rolling = self.base.rolling_logprob(text)
        self.assertEqual(list(rolling.token_ids), self.model.encode(text))
        self.assertEqual(rolling.num_tokens, len(rolling.logprobs) + 1)
        self.assertEqual((rolling.token_ids.dtype, rolling.logprobs.dtype), (np.int64, np.float32))
        start = len(self.model.encode(PROMPT))
        self.assertAlmostEqual(
            float(rolling.logprobs[start - 1 :].sum()), self.base.logprob_of(PROMPT, COMPLETION), places=4
        )
        self.assertAlmostEqual(rolling.perplexity, np.exp(-rolling.total_logprob / len(rolling.logprobs)))
        improbable = saker.RollingLogprob(rolling.token_ids, rolling.logprobs, rolling.num_tokens, -1e6)
        self.assertEqual(improbable.perplexity, np.inf)
        short = self.base.rolling_logprob("")
        self.assertEqual((short.logprobs.size, short.total_logprob, short.mean_logprob), (0, 0.0, 0.0))

    def test_logits(self):
        tokens = self.model.encode(PROMPT)
        logits = self.base.forward_logits(PROMPT)
        self.assertEqual((logits.shape, logits.dtype), ((len(tokens), 2048), np.float32))
        np.testing.assert_array_equal(self.base.forward_logits(tokens), logits)
        np.testing.assert_array_equal(self.base.forward_logits(np.array(tokens)), logits)
        wide = logits.astype(np.float64)
        logprobs = wide - np.log(np.exp(wide - wide.max(-1, keepdims=True)).sum(-1, keepdims=True)) - wide.max(-1, keepdims=True)
        scored = self.base.rolling_logprob(PROMPT).logprobs
        np.testing.assert_allclose(logprobs[np.arange(len(tokens) - 1), tokens[1:]], scored, atol=1e-6)
        self.assertEqual(int(logits[-1].argmax()), self.base.next_token_dist(PROMPT, top_k=1).token_ids[0])
        self.assertGreater(np.abs(self.model.ft().forward_logits(PROMPT) - logits).max(), 0)
        self.assertEqual(self.base.forward_logits("").shape, (0, 2048))
        with self.assertRaisesRegex(ValueError, "expected at most"):
            self.base.forward_logits([1] * 100000)

    def test_next_token(self):
        top = self.base.next_token_dist(PROMPT, top_k=8)
        self.assertEqual((top.token_ids.shape, top.logprobs.shape, top.vocab_size), ((8,), (8,), 2048))
        self.assertTrue((np.diff(top.logprobs) <= 0).all())
        self.assertAlmostEqual(np.exp(top.logprobs).sum() + np.exp(top.tail_logprob), 1.0, places=5)
        for all_or_more in (100000, 2**40):
            self.assertIsNone(self.base.next_token_dist(PROMPT, top_k=all_or_more).tail_logprob)
        with self.assertRaisesRegex(ValueError, "top_k: got 0"):
            self.base.next_token_dist(PROMPT, top_k=0)

    def test_batches_have_the_bits_of_single_runs(self):
        texts = [PROMPT, PROMPT + COMPLETION, "Once upon a time there was", "x y z", COMPLETION] * 14  # More than one batch.
        for text, rolling in zip(texts, self.base.rolling_logprob_batch(texts), strict=True):
            np.testing.assert_array_equal(rolling.logprobs, self.base.rolling_logprob(text).logprobs)
        for text, dist in zip(texts, self.base.next_token_dist_batch(texts[:5], top_k=5), strict=False):
            np.testing.assert_array_equal(dist.logprobs, self.base.next_token_dist(text, top_k=5).logprobs)
        pairs = [(PROMPT, " mice"), (PROMPT, " fish"), ("a", "b")]
        self.assertEqual(self.base.logprob_of_batch(pairs), [self.base.logprob_of(*pair) for pair in pairs])

    def test_what_fails_keeps_the_others_from_nothing(self):
        requests = [
            saker.ScoreRequest(prompt=PROMPT, completion=""),
            saker.ScoreRequest(text=PROMPT),
            saker.ScoreRequest(tokens=[1, 99999999]),
            saker.ScoreRequest(),
        ]
        bad, good, token, empty = self.model.score(requests)
        self.assertIsInstance(good, saker.ScoreResult)
        self.assertEqual([scores.view for scores in good.views], ["base", "ft"])
        for outcome in (bad, token, empty):
            self.assertIsInstance(outcome, saker.InvalidArgumentError)
        with self.assertRaises(saker.InvalidArgumentError):
            self.base.logprob_of(PROMPT, "")
        with self.assertRaisesRegex(saker.InvalidArgumentError, "the prompt has no tokens"):
            self.base.logprob_of("", COMPLETION)

    def test_a_lone_surrogate_is_refused_by_name(self):
        text = "a\ud800b"
        messages = [{"role": "user", "content": text}]
        calls = {
            "text": lambda: self.base.rolling_logprob(text),
            "completion": lambda: self.base.logprob_of("a", text),
            "prompt": lambda: self.base.next_token_dist(text),
            "prompt ": lambda: self.base.generate(text),
            "text ": lambda: self.model.encode(text),
            "stop": lambda: self.base.generate("a", stop=["b", text]),
            "dry_sequence_breakers": lambda: self.base.generate("a", dry_sequence_breakers=[text]),
            "messages": lambda: self.base.generate(messages),
            "messages ": lambda: self.model.render_chat(messages),
            "tools": lambda: self.base.generate([{"role": "user", "content": "a"}], tools=[{"name": text}]),
        }
        for name, call in calls.items():
            with self.subTest(name), self.assertRaises(saker.InvalidArgumentError) as caught:
                call()
            self.assertEqual(
                str(caught.exception), f"{name.strip()}: has the lone surrogate U+D800, expected a text that UTF-8 can hold"
            )

    def test_an_array_outlives_its_model(self):
        (result,) = self.model.score([saker.ScoreRequest(text=PROMPT)])
        logprobs = result.views[0].logprobs
        copy = logprobs.copy()
        del result
        np.testing.assert_array_equal(logprobs, copy)


if __name__ == "__main__":
    unittest.main()

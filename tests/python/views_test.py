# SPDX-License-Identifier: Apache-2.0
"""Views of one model: base, fine-tune, other strengths and null adapters."""

import unittest

import numpy as np
from demo import DEMO, DemoTest, make_adapter

import saker

TEXT = "Once upon a time there was a young fox named Ruby."


class Views(DemoTest):
    def logprobs(self, view):
        return view.rolling_logprob(TEXT).logprobs

    def test_strength_0_is_the_base_and_1_the_fine_tune(self):
        base, ft = self.logprobs(self.model.base()), self.logprobs(self.model.ft())
        np.testing.assert_array_equal(self.logprobs(self.model.scaled(0.0)), base)
        np.testing.assert_array_equal(self.logprobs(self.model.scaled(1.0)), ft)
        half = self.logprobs(self.model.scaled(0.5))
        self.assertFalse(np.array_equal(half, base) or np.array_equal(half, ft) or np.array_equal(base, ft))
        np.testing.assert_array_equal(self.model.rolling_logprob(TEXT).logprobs, ft)

    def test_null_views_are_seeded(self):
        null = self.logprobs(self.model.null(7))
        np.testing.assert_array_equal(self.logprobs(self.model.null(7)), null)
        self.assertFalse(np.array_equal(self.logprobs(self.model.null(8)), null))
        self.assertFalse(np.array_equal(self.logprobs(self.model.null(7, rank_scale=2.0)), null))
        for scale in (0.0, -1.0, float("nan"), float("inf")):
            with self.assertRaises(ValueError):
                self.model.null(7, rank_scale=scale)

    def test_null_views_generate(self):
        def answer(view):
            return [each.logprob for each in view.generate(TEXT, max_tokens=8, logprobs=0, ignore_eos=True).logprobs]

        null = answer(self.model.null(7, init_scale=0.1))
        self.assertEqual(answer(self.model.null(7, init_scale=0.1)), null)
        others = self.model.null(8, init_scale=0.1), self.model.null(7), self.model.ft(), self.model.base()
        self.assertTrue(all(answer(view) != null for view in others))
        prompt = self.model.encode(TEXT)
        generated = self.model.null(7, init_scale=0.1).generate(TEXT, max_tokens=8, ignore_eos=True).tokens
        request = saker.ScoreRequest(tokens=generated, prompt_tokens=prompt)
        (scored,) = self.model.score([request], views=["null:7:0.1"])
        self.assertEqual(list(scored.views[0].logprobs[len(prompt) :]), null)

    def test_ids_are_those_of_dlm_sway(self):
        views = (self.model.base(), self.model.ft(), self.model.scaled(0.5), self.model.null(7),
                 self.model.null(7, rank_scale=2.0))
        self.assertEqual([view.id for view in views], ["base", "ft", "scaled_0.50", "null_7", "null_7_rank2.00"])

    def test_views_work_together_and_as_context_managers(self):
        with self.model.base() as base, self.model.ft() as ft:
            apart = self.logprobs(base), self.logprobs(ft)
        (both,) = self.model.score([saker.ScoreRequest(text=TEXT)], views=[base, "ft", self.model.scaled(0.0)])
        for scores, wanted in zip(both.views, (*apart, apart[0]), strict=True):
            np.testing.assert_array_equal(scores.logprobs[1:].astype(np.float32), wanted)
        self.assertEqual([scores.view for scores in both.views], ["base", "ft", "0.0"])

    def test_generate_follows_the_view(self):
        base = self.model.base().generate(TEXT, max_tokens=20, logprobs=0)
        zero = self.model.scaled(0.0).generate(TEXT, max_tokens=20, logprobs=0)
        ft = self.model.generate(TEXT, max_tokens=20, logprobs=0)
        self.assertEqual([each.logprob for each in base.logprobs], [each.logprob for each in zero.logprobs])
        self.assertNotEqual([each.logprob for each in base.logprobs], [each.logprob for each in ft.logprobs])

    def test_adapters_have_names(self):
        other = make_adapter(self.folder / "other", seed=2)
        with saker.load(DEMO, adapter={"one": self.adapter, "two": other}) as model:
            one, two = self.logprobs(model.view("one")), self.logprobs(model.view("two"))
            np.testing.assert_array_equal(one, self.logprobs(model.ft()))
            self.assertFalse(np.array_equal(one, two))
            self.assertFalse(np.array_equal(self.logprobs(model.view("two@0.5")), two))

    def test_what_is_no_view(self):
        for key in ("", "half", "null:", "nan"):
            with self.assertRaises(saker.InvalidArgumentError):
                self.model.view(key)
        with saker.load(DEMO) as model:
            self.assertEqual(model.default_view.id, "base")
            with self.assertRaisesRegex(ValueError, "needs an adapter"):
                model.ft()
        with saker.load(DEMO, adapter=self.folder) as model, self.assertRaises(saker.NotFoundError):
            model.ft().rolling_logprob(TEXT)


if __name__ == "__main__":
    unittest.main()

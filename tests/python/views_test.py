# SPDX-License-Identifier: Apache-2.0
"""Views of one model: base, fine-tune, other strengths and null adapters."""

import json
import unittest

import numpy as np
from demo import DEMO, ROOT, DemoTest, make_adapter
from safetensors.numpy import load_file

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
        with self.assertRaisesRegex(saker.InvalidArgumentError, 'adapter name "0.5"'):
            saker.load(DEMO, adapter={"0.5": self.adapter})
        with saker.load(DEMO, adapter={"one": self.adapter, "two": other}) as model:
            one, two = self.logprobs(model.view("one")), self.logprobs(model.view("two"))
            np.testing.assert_array_equal(one, self.logprobs(model.ft()))
            self.assertFalse(np.array_equal(one, two))
            self.assertFalse(np.array_equal(self.logprobs(model.view("two@0.5")), two))

    def test_a_single_view_at_a_time(self):
        with saker.load(DEMO, adapter=self.adapter, single_view=True) as model:
            with self.assertRaisesRegex(ZeroDivisionError, ""), model.base() as base:
                with self.assertRaisesRegex(RuntimeError, "view 'base' already active; exit it before entering 'ft'"):
                    with model.ft():
                        self.fail("two views")
                self.logprobs(base)
                raise ZeroDivisionError
            with model.ft() as ft:
                self.logprobs(ft)
            self.logprobs(ft)

    def test_differences(self):
        views = [self.model.base(), "0.5", self.model.ft(), "null:1", "null:2"]
        got = self.model.differences(saker.ScoreRequest(text=TEXT, top_k=32), views=views)
        self.assertEqual((got.reference, [view.view for view in got.views]), ("base", ["0.5", "ft", "null:1", "null:2"]))
        ft = got.views[1]
        deltas = self.model.ft().rolling_logprob(TEXT).logprobs - self.model.base().rolling_logprob(TEXT).logprobs
        self.assertTrue(np.isnan(ft.deltas[0]))
        np.testing.assert_allclose(ft.deltas[1:], deltas, atol=1e-5)
        self.assertAlmostEqual(ft.mean, float(ft.deltas[1:].mean()))
        self.assertAlmostEqual(ft.mean_change, float(np.abs(ft.deltas[1:]).mean()))
        self.assertTrue(ft.mean_interval[0] <= ft.mean <= ft.mean_interval[1])
        self.assertTrue(0 < ft.js < ft.kl and np.isfinite(ft.z) and got.ablation is not None)
        plain = self.model.differences(TEXT)
        self.assertEqual((plain.reference, plain.views[0].view, plain.views[0].kl), ("base", "ft", None))
        with self.assertRaisesRegex(ValueError, "two"):
            self.model.differences(TEXT, views=["base"])

    def test_an_adapter_with_a_vocabulary_of_its_own(self):
        folder = ROOT / "tests" / "golden"
        adapter = folder / "adapters" / "peft_resized"
        golden = load_file(adapter / "golden.safetensors")
        tokens, logits = golden["ids"].tolist(), golden["logits"].astype(np.float64)
        wanted = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
        with saker.load(folder / "llama", adapter=adapter) as model:
            self.assertEqual(model.facts.vocab_size, logits.shape[1])
            (scored,) = model.score([saker.ScoreRequest(tokens=tokens)], views=[model.ft()])
            rows = np.arange(len(tokens) - 1)
            np.testing.assert_allclose(scored.views[0].logprobs[1:], wanted[rows, tokens[1:]], atol=2e-2)
            (refused,) = model.score([saker.ScoreRequest(tokens=tokens)], views=["base"])
            self.assertRegex(str(refused), "vocabulary of its own")

    def test_preflight(self):
        self.assertEqual(self.model.preflight(), (True, ""))
        with saker.load(DEMO, adapter=make_adapter(self.folder / "huge", noise=1e30)) as model:
            ok, reason = model.preflight()
            self.assertFalse(ok)
            self.assertRegex(reason, "ft.*finite")
            self.assertTrue(model.preflight(views=["base"])[0])

    def test_known_scores_and_the_trace(self):
        trace = self.folder / "trace.jsonl"
        model = saker.load(DEMO, adapter=self.adapter, trace=trace)
        first = self.logprobs(model.ft())
        model.set_current_probe("again")
        np.testing.assert_array_equal(self.logprobs(model.ft()), first)
        self.logprobs(model.scaled(1.0000001))
        model.set_current_probe(None)
        model.base().next_token_dist_batch([TEXT, "once", TEXT])
        stats = model.score_stats
        self.assertEqual((stats.cache_hits, stats.cache_misses, stats.hit_rate), (1, 5, 1 / 6))
        self.assertEqual((stats.batches_sent, stats.batched_prompts, stats.max_batch_size), (1, 3, 3))
        lines = [json.loads(line) for line in trace.read_text().splitlines()]
        self.assertEqual([line["probe"] for line in lines], [None, "again", "again", None, None, None])
        self.assertEqual([line["hit"] for line in lines], [False, True, False, False, False, False])
        self.assertEqual({*lines[0]}, {"ts", "probe", "view_id", "prompt_hash", "top_k", "op", "wall_ms", "hit"})
        for _ in range(2):
            model.close()
        saker.Model.__new__(saker.Model).close()  # Never whole.
        with saker.load(DEMO, cache_entries=0) as model:
            for _ in range(2):
                self.logprobs(model.base())
            self.assertEqual(model.score_stats.cache_hits, 0)
        with self.assertRaises(saker.NotFoundError):
            saker.load(DEMO, trace=self.folder / "no" / "trace.jsonl")

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

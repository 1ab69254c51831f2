# SPDX-License-Identifier: Apache-2.0
"""dlm-sway itself, with its own loader and runner, on the backend."""

import json
import math
import os
import unittest
from unittest import mock

import numpy as np
import yaml
from demo import DEMO, DemoTest, make_adapter
from dlm_sway.backends import build
from dlm_sway.backends._instrumentation import TraceWriter
from dlm_sway.core.errors import BackendNotAvailableError, ProbeError, SpecValidationError
from dlm_sway.core.model import ModelSpec
from dlm_sway.core.scoring import NullCalibratedBackend, PreflightCheckable, ScalableDifferentialBackend
from dlm_sway.suite.loader import load_spec
from dlm_sway.suite.runner import run
from safetensors.numpy import load_file, save_file

PROMPTS = ["What does a fox eat?", "Once upon a time", "Who are you?", "A fox lives in"]
SUITE = [
    {"name": "noise", "kind": "null_adapter", "runs": 3, "cache": False},
    {"name": "divergence", "kind": "delta_kl", "prompts": PROMPTS, "top_k": 64},
    {"name": "strengths", "kind": "adapter_ablation", "prompts": PROMPTS, "top_k": 64},
    {"name": "drift", "kind": "calibration_drift", "items_limit": 8},
    {"name": "perplexity", "kind": "external_perplexity", "max_chunks": 2},
    {"name": "style", "kind": "style_fingerprint", "prompts": PROMPTS, "max_new_tokens": 12},
]


class Sway(DemoTest):
    entry_point = "saker.sway:SakerBackend"

    def model_spec(self, **options):
        return ModelSpec(kind="custom", base=str(DEMO), entry_point=self.entry_point, **options)

    def backend(self, adapter=None):
        backend = build(self.model_spec(), adapter_path=adapter or self.adapter)
        self.addCleanup(backend.close)
        return backend

    def run_suite(self, backend, **options):
        models = {"kind": "custom", "base": str(DEMO), "entry_point": self.entry_point}
        path = self.folder / "sway.yaml"
        spec = {"version": 1, "models": {"base": models, "ft": {**models, "adapter": str(self.adapter)}}, "suite": SUITE}
        path.write_text(yaml.safe_dump(spec))
        return {probe.name: probe for probe in run(load_spec(path), backend, **options).probes}

    def test_protocols(self):
        backend = self.backend()
        for protocol in (ScalableDifferentialBackend, NullCalibratedBackend, PreflightCheckable):
            self.assertIsInstance(backend, protocol)
        self.assertTrue(backend.safe_for_concurrent_views)
        self.assertEqual(backend.preflight_finite_check(), (True, ""))

    def test_null_calibration_gives_z_scores_that_repeat(self):
        first, second = self.run_suite(self.backend()), self.run_suite(self.backend())
        divergence = first["divergence"]
        self.assertTrue(math.isfinite(divergence.z_score))
        self.assertEqual(divergence.z_score, second["divergence"].z_score)
        self.assertGreater(divergence.raw, 0.0)
        self.assertEqual(divergence.evidence["per_prompt"], second["divergence"].evidence["per_prompt"])
        curve = first["strengths"].evidence["mean_divergence_per_lambda"]
        self.assertEqual(curve[0], 0.0)
        self.assertEqual(len(curve), 6)
        for probe in first.values():
            self.assertNotEqual(probe.verdict.value, "error", probe.message)

    def test_trace_and_statistics(self):
        backend = self.backend()
        trace = self.folder / "trace.jsonl"
        self.run_suite(backend, trace_path=trace)
        lines = [json.loads(line) for line in trace.read_text().splitlines()]
        self.assertTrue({"divergence", "strengths"} <= {line["probe"] for line in lines})
        self.assertTrue(any(line["hit"] for line in lines))
        self.assertEqual(backend._inst.stats.forward_passes, sum(not line["hit"] for line in lines))

    def test_views_score_like_the_model(self):
        backend = self.backend()
        with backend.as_scaled_adapter(0.5) as half, backend.as_base() as base:
            self.assertEqual((half.id, base.id), ("scaled_0.50", "base"))
            self.assertEqual(half.logprob_of("a", " b"), self.model.scaled(0.5).logprob_of("a", " b"))
            rolling = base.rolling_logprob(PROMPTS[0])
            self.assertEqual(rolling.perplexity, math.exp(-rolling.mean_logprob))
            one, two = base.next_token_dist_batch(PROMPTS[:2], top_k=4)
            np.testing.assert_array_equal(two.logprobs, base.next_token_dist(PROMPTS[1], top_k=4).logprobs)
            text = base.generate("Once upon a time", max_new_tokens=8)
            self.assertEqual(text, self.model.base().generate("Once upon a time", max_tokens=8).text)
            with self.assertRaisesRegex(ProbeError, "logprob_of"):
                base.logprob_of("a", "")
        for scale in (0.0, -1.0, math.nan):
            with self.assertRaises(ValueError), backend.as_null_adapter(7, rank_scale=scale):
                pass

    def test_strengths_that_look_alike_are_kept_apart(self):
        backend = self.backend()
        with backend.as_scaled_adapter(0.501) as one, backend.as_scaled_adapter(0.504) as two:
            self.assertNotEqual(one.id, two.id)
            self.assertNotEqual(one.logprob_of("a", " b"), two.logprob_of("a", " b"))

    def test_different_prompts_never_share_a_result(self):
        backend = self.backend()
        hash_of = "dlm_sway.backends._instrumentation._prompt_hash"
        with mock.patch(hash_of, return_value="0" * 12), backend.as_base() as view:
            self.assertNotEqual(view.logprob_of("a", " b"), view.logprob_of("a", " c"))
            lengths = [view.rolling_logprob(text).num_tokens for text in PROMPTS]
        self.assertEqual(lengths, [len(self.model.encode(text)) for text in PROMPTS])

    def test_a_batch_runs_what_is_not_known(self):
        backend = self.backend()
        with backend.as_null_adapter(7, init_scale=0.1) as view:
            second = view.next_token_dist(PROMPTS[1], top_k=4)
            every = view.next_token_dist_batch(PROMPTS, top_k=4)
            again = view.next_token_dist_batch(PROMPTS, top_k=4)
            self.assertEqual(view.next_token_dist_batch([], top_k=4), [])
        self.assertIs(every[1], second)
        self.assertTrue(all(one is other for one, other in zip(every, again, strict=True)))
        stats = backend._inst.stats.to_dict()
        self.assertEqual((stats["cache_misses"], stats["cache_hits"], stats["forward_passes"]), (4, 5, 2))
        self.assertEqual((stats["batches_sent"], stats["batched_prompts"], stats["max_batch_size"]), (1, 3, 3))
        for prompt, one in zip(PROMPTS, every, strict=True):
            alone = self.model.null(7, init_scale=0.1).next_token_dist(prompt, top_k=4)
            np.testing.assert_array_equal(one.logprobs, alone.logprobs)

    def test_the_trace_has_dlm_sway_s_ids(self):
        backend = self.backend()
        trace = self.folder / "ids.jsonl"
        backend._inst.trace = TraceWriter(trace)
        with backend.as_scaled_adapter(0.5) as half, backend.as_null_adapter(7) as null, backend.as_scaled_adapter(1) as one:
            half.logprob_of("a", " b")
            null.next_token_dist_batch(PROMPTS[:2])
            one.rolling_logprob("a b")
        backend.close()
        lines = [json.loads(line) for line in trace.read_text().splitlines()]
        self.assertEqual([line["view_id"] for line in lines], ["scaled_0.50", "null_7", "null_7", "scaled_1.00"])

    def test_one_view_at_a_time_where_asked_for(self):
        from saker.sway import SakerBackend

        backend = SakerBackend(base_spec=self.model_spec(), adapter_path=self.adapter, single_view=True)
        self.addCleanup(backend.close)
        self.assertFalse(backend.safe_for_concurrent_views)
        with self.assertRaisesRegex(RuntimeError, "'base' already active; exit it before entering 'ft'"):
            with backend.as_base(), backend.as_finetuned():
                pass
        with backend.as_finetuned() as view:  # Released by the error.
            self.assertEqual(view.id, "ft")

    def test_a_broken_adapter_is_found_before_the_probes(self):
        broken = make_adapter(self.folder / "broken")
        file = broken / "adapter_model.safetensors"
        tensors = load_file(file)
        next(iter(tensors.values()))[:] = np.nan
        save_file(tensors, file)
        ok, reason = self.backend(broken).preflight_finite_check()
        self.assertFalse(ok)
        self.assertNotEqual(reason, "")

    def test_identity_follows_the_adapter_s_content(self):
        folder = make_adapter(self.folder / "changing", seed=3)
        backend = self.backend(folder)
        before = backend.cache_identity()
        self.assertEqual(self.backend(folder).cache_identity(), before)
        config = json.loads((folder / "adapter_config.json").read_text())
        (folder / "adapter_config.json").write_text(json.dumps({**config, "lora_alpha": 3}))
        self.assertNotEqual(self.backend(folder).cache_identity(), before)

    def test_what_cannot_be_built(self):
        with self.assertRaises(SpecValidationError):
            build(self.model_spec())
        with mock.patch.dict(os.environ, HF_HUB_CACHE=str(self.folder)), self.assertRaises(FileNotFoundError):
            build(ModelSpec(kind="custom", base="no/model", entry_point=self.entry_point), adapter_path=self.adapter)
        with self.assertRaises(BackendNotAvailableError):
            build(self.model_spec(device="cuda"), adapter_path=self.adapter)
        from saker.sway import SakerBackend

        half = SakerBackend.__new__(SakerBackend)
        half.close()
        whole = self.backend()
        whole.close()
        whole.close()


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""The same numbers as transformers and PEFT: dlm-sway's probes and the harness's requests on both, in float32."""

import json
import shutil
import unittest

import numpy as np
from demo import DEMO, DemoTest, make_adapter
from dlm_sway.backends import build
from dlm_sway.core.model import ModelSpec
from dlm_sway.suite.runner import run
from dlm_sway.suite.spec import SuiteModels, SwaySpec
from lm_eval.models.huggingface import HFLM
from lm_eval_test import PROMPTS, TEXTS, evaluate, write_tasks
from safetensors.numpy import save_file

from saker.lm_eval import SakerLM

TOLERANCE = 2e-3
QUESTIONS = ["What does a fox eat?", "Once upon a time there was", "Who are you?", "Ruby lives in"]


def float32_demo(folder):
    """The bundled model with plain weights, as transformers reads it."""
    config = json.loads((DEMO / "config.json").read_text())
    width = config.pop("quantization")["group_size"]
    config.pop("quantization_config", None)
    config["torch_dtype"] = "float32"
    packed = read_safetensors(DEMO / "model.safetensors")
    weights = {}
    for name, value in packed.items():
        if name.endswith((".scales", ".biases")):
            continue
        scales = packed.get(name.removesuffix("weight") + "scales")
        if scales is not None:
            codes = value.view(np.uint8).astype(np.float32).reshape(value.shape[0], -1, width)
            value = (codes * scales[..., None] + packed[name.removesuffix("weight") + "biases"][..., None]).reshape(
                value.shape[0], -1
            )
        weights[name] = np.ascontiguousarray(value, dtype=np.float32)
    folder.mkdir()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))
    for name in ("generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(DEMO / name, folder)
    return folder


def read_safetensors(path):
    """Arrays by name; bfloat16 becomes float32, which NumPy has."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    arrays = {}
    for name, entry in json.loads(raw[8:start]).items():
        if name == "__metadata__":
            continue
        first, last = entry["data_offsets"]
        data = raw[start + first : start + last]
        if entry["dtype"] == "BF16":
            value = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
        else:
            value = np.frombuffer(data, {"F32": np.float32, "U32": np.uint32}[entry["dtype"]])
        arrays[name] = value.reshape(entry["shape"])
    return arrays


class Agreement(DemoTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.base = float32_demo(cls.folder / "float32")
        cls.strong = make_adapter(cls.folder / "strong", noise=0.15)

    def probes(self, kind):
        spec = ModelSpec(kind=kind, base=str(self.base), entry_point="saker.sway:SakerBackend", dtype="fp32", device="cpu")
        suite = [
            {"name": "divergence", "kind": "delta_kl", "prompts": QUESTIONS},
            {"name": "strengths", "kind": "adapter_ablation", "prompts": QUESTIONS},
        ]
        backend = build(spec, adapter_path=self.strong)
        self.addCleanup(backend.close)
        found = {probe.name: probe for probe in run(SwaySpec(models=SuiteModels(base=spec, ft=spec), suite=suite), backend).probes}
        return backend, found["divergence"], found["strengths"]

    def test_dlm_sway(self):
        ours, divergence, strengths = self.probes("custom")
        theirs, divergence_hf, strengths_hf = self.probes("hf")
        self.assertGreater(divergence_hf.raw, 10 * TOLERANCE)
        np.testing.assert_allclose(divergence.evidence["per_prompt"], divergence_hf.evidence["per_prompt"], atol=TOLERANCE)
        self.assertAlmostEqual(divergence.raw, divergence_hf.raw, delta=TOLERANCE)
        for name in ("mean_divergence_per_lambda", "linearity", "saturation_lambda", "overshoot"):
            np.testing.assert_allclose(strengths.evidence[name], strengths_hf.evidence[name], atol=TOLERANCE)
        for text in QUESTIONS:
            for view, view_hf in ((ours.as_base(), theirs.as_base()), (ours.as_finetuned(), theirs.as_finetuned())):
                with view as one, view_hf as other:
                    rolling, rolling_hf = one.rolling_logprob(text), other.rolling_logprob(text)
                    np.testing.assert_array_equal(rolling.token_ids, rolling_hf.token_ids)
                    np.testing.assert_allclose(rolling.logprobs, rolling_hf.logprobs, atol=TOLERANCE)
                    self.assertAlmostEqual(
                        one.logprob_of(text, " mice and"), other.logprob_of(text, " mice and"), delta=3 * TOLERANCE
                    )
                    self.assertEqual(one.generate(text, max_new_tokens=8), other.generate(text, max_new_tokens=8))

    def test_harness(self):
        folder = write_tasks(self.folder / "tasks")
        ours = evaluate(SakerLM(str(self.base)), folder)
        theirs = evaluate(HFLM(str(self.base), dtype="float32", device="cpu", batch_size=1), folder)
        for task in ("choices", "texts", "prompts"):
            for sample, sample_hf in zip(ours["samples"][task], theirs["samples"][task], strict=True):
                for got, wanted in zip(sample["filtered_resps"], sample_hf["filtered_resps"], strict=True):
                    if task == "prompts":
                        self.assertEqual(got, wanted)
                    elif task == "texts":
                        self.assertAlmostEqual(got, wanted, delta=TOLERANCE * len(TEXTS[1]["text"]) / 4)
                    else:
                        self.assertAlmostEqual(got[0], wanted[0], delta=10 * TOLERANCE)
                        self.assertEqual(bool(got[1]), bool(wanted[1]))
        self.assertEqual(len(PROMPTS), len(ours["samples"]["prompts"]))


if __name__ == "__main__":
    unittest.main()

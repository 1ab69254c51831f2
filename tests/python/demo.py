# SPDX-License-Identifier: Apache-2.0
"""The bundled model, and random adapters for it."""

import json
import pathlib
import shutil
import tempfile
import unittest

import numpy as np
from safetensors.numpy import save_file

import saker

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = ROOT / "models" / "demo"
RANK = 4


def make_adapter(folder: pathlib.Path, seed: int = 1, noise: float = 0.05) -> pathlib.Path:
    """A LoRA of PEFT on the attention of every layer, with random weights."""
    config = json.loads((DEMO / "config.json").read_text())
    hidden, head = config["hidden_size"], config["head_dim"]
    outputs = {"q_proj": config["num_attention_heads"] * head, "v_proj": config["num_key_value_heads"] * head}
    rng = np.random.default_rng(seed)
    tensors = {}
    for layer in range(config["num_hidden_layers"]):
        for name, rows in outputs.items():
            for matrix, shape in (("A", (RANK, hidden)), ("B", (rows, RANK))):
                path = f"base_model.model.model.layers.{layer}.self_attn.{name}.lora_{matrix}.weight"
                tensors[path] = (noise * rng.standard_normal(shape)).astype(np.float32)
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "adapter_model.safetensors")
    settings = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": RANK, "lora_alpha": 16, "target_modules": [*outputs]}
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    return folder


class DemoTest(unittest.TestCase):
    """The model with an adapter as ``self.model``, loaded once for the class."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.adapter = make_adapter(cls.folder / "adapter")
        cls.model = saker.load(DEMO, adapter=cls.adapter)
        cls.addClassCleanup(cls.model.close)

# SPDX-License-Identifier: Apache-2.0
"""A target as a draft's training needs it: frozen, with the output of some of its layers.

Any folder that transformers loads as a causal language model, and those that MLX quantized (affine, any width), whose
weights are brought back to floats.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig
from weights import read_weights


@dataclass(frozen=True)
class Target:
    model: nn.Module
    config: PretrainedConfig  # of the text model
    embedding: Tensor  # [vocab, hidden]
    head: Tensor  # [vocab, hidden]

    @torch.no_grad()
    def features(self, ids: Tensor, layers: tuple[int, ...]) -> Tensor:
        """ids [B, T] -> what these layers give, side by side, [B, T, len(layers) * hidden]."""
        states = self.model.model(input_ids=ids, output_hidden_states=True, use_cache=False).hidden_states
        return torch.cat([states[layer + 1] for layer in layers], -1)

    @torch.no_grad()
    def final_rows(self, ids: Tensor) -> Tensor:
        """ids [B, T] -> what the head gets, [B, T, hidden]."""
        return self.model.model(input_ids=ids, use_cache=False).last_hidden_state


def load_target(folder: Path, device: str, dtype: torch.dtype) -> Target:
    raw = json.loads((folder / "config.json").read_text())
    packed = raw.get("quantization")
    if packed is None:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    else:
        config = AutoConfig.for_model(**{k: v for k, v in raw.items() if not k.startswith("quantization")})
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
        missing, unexpected = model.load_state_dict(read_weights(folder), strict=False)
        missing = set(missing) - set(model._tied_weights_keys or ())
        if missing or unexpected:
            raise SystemExit(f"{folder}: no tensors {sorted(missing)[:3]}, unknown {sorted(unexpected)[:3]}")
        model.tie_weights()
    model.eval().requires_grad_(False).to(device)
    embedding = model.get_input_embeddings().weight
    return Target(model, model.config.get_text_config(), embedding, model.get_output_embeddings().weight)

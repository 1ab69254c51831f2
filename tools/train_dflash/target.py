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
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, PretrainedConfig


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
        tensors: dict[str, Tensor] = {}
        for path in sorted(folder.glob("model*.safetensors")):
            tensors |= load_file(path)
        missing, unexpected = model.load_state_dict(dequantized(tensors, packed), strict=False)
        missing = set(missing) - set(model._tied_weights_keys or ())
        if missing or unexpected:
            raise SystemExit(f"{folder}: no tensors {sorted(missing)[:3]}, unknown {sorted(unexpected)[:3]}")
        model.tie_weights()
    model.eval().requires_grad_(False).to(device)
    embedding = model.get_input_embeddings().weight
    return Target(model, model.config.get_text_config(), embedding, model.get_output_embeddings().weight)


def dequantized(tensors: dict[str, Tensor], packed: dict) -> dict[str, Tensor]:
    """MLX's affine codes as floats: code * scale + bias in groups along a row; `packed` is the file's `quantization`."""
    floats = {}
    for name, tensor in tensors.items():
        base, _, part = name.rpartition(".")
        if base + ".scales" not in tensors:
            floats[name] = tensor
        elif part == "weight":
            own = packed.get(base)
            bits = (own if isinstance(own, dict) else packed)["bits"]
            scales, biases = tensors[base + ".scales"].float(), tensors[base + ".biases"].float()
            codes = unpacked(tensor, bits).view(*scales.shape, -1)
            floats[name] = (codes * scales.unsqueeze(-1) + biases.unsqueeze(-1)).flatten(-2)
    return floats


def unpacked(words: Tensor, bits: int) -> Tensor:
    """Codes of a row lie one after the other from the lowest bit of its first word: uint32 [N, W] -> float [N, 32 W / bits]."""
    octets = words.contiguous().view(torch.uint8)
    places = torch.arange(8, dtype=torch.uint8)
    stream = (octets.unsqueeze(-1) >> places & 1).flatten(-2)
    return stream.view(words.shape[0], -1, bits).float() @ (2.0 ** torch.arange(bits))

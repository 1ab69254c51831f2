# SPDX-License-Identifier: Apache-2.0
"""The tensors of a model or draft folder; those that MLX quantized (affine, any width) are brought back to floats."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor


def read_weights(folder: Path) -> dict[str, Tensor]:
    tensors: dict[str, Tensor] = {}
    for path in sorted(folder.glob("model*.safetensors")):
        tensors |= load_file(path)
    if not tensors:
        raise SystemExit(f"{folder}: no model*.safetensors")
    return dequantized(tensors, json.loads((folder / "config.json").read_text()).get("quantization", {}))


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

# SPDX-License-Identifier: Apache-2.0
"""Log-probabilities of GGUF models in float32 with NumPy: dequantized weights, nothing rounded. Llama, Qwen 2 and Gemma 3."""

import pathlib

import numpy as np
from gguf import GGUFReader, quants

FEATURES_OF_GEMMA = "gemma3"
GLOBAL_EVERY = 6  # Gemma 3: of so many layers the last one has no window.
LOCAL_ROPE_BASE = 1e4


class Truth:
    def __init__(self, path: pathlib.Path) -> None:
        reader = GGUFReader(path)
        fields = reader.fields
        self.kind = fields["general.architecture"].contents()

        def value(key: str, default: float = 0.0) -> float:
            name = f"{self.kind}.{key}"
            return fields[name].contents() if name in fields else default

        self.layers, self.heads = value("block_count"), value("attention.head_count")
        self.kv_heads, self.width = value("attention.head_count_kv"), value("embedding_length")
        self.head_dim = value("attention.key_length") or self.width // self.heads
        self.eps, self.base = value("attention.layer_norm_rms_epsilon"), value("rope.freq_base", LOCAL_ROPE_BASE)
        self.window = value("attention.sliding_window")
        self.weights = {tensor.name: self.floats(tensor) for tensor in reader.tensors}

    def floats(self, tensor) -> np.ndarray:
        values = quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        if self.kind == "llama" and (".attn_q." in tensor.name or ".attn_k." in tensor.name):
            # llama.cpp rotates neighbours; the halves of a head come back.
            heads = self.heads if ".attn_q." in tensor.name else self.kv_heads
            halves = values.reshape(heads, values.shape[0] // heads // 2, 2, -1)
            values = halves.swapaxes(1, 2).reshape(values.shape)
        return values

    def norm(self, x: np.ndarray, weight: np.ndarray) -> np.ndarray:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps) * weight

    def rope(self, x: np.ndarray, base: float) -> np.ndarray:
        half = self.head_dim // 2
        angles = np.arange(len(x))[:, None, None] * base ** (-np.arange(half) / half)
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        a, b = x[..., :half], x[..., half:]
        return np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)

    def attention(self, x: np.ndarray, layer: int) -> np.ndarray:
        part = lambda name: self.weights.get(f"blk.{layer}.{name}")
        rows = len(x)

        def project(name: str, heads: int) -> np.ndarray:
            y = x @ part(f"{name}.weight").T
            bias = part(f"{name}.bias")
            return (y if bias is None else y + bias).reshape(rows, heads, self.head_dim)

        q, k, v = project("attn_q", self.heads), project("attn_k", self.kv_heads), project("attn_v", self.kv_heads)
        if part("attn_q_norm.weight") is not None:
            q, k = self.norm(q, part("attn_q_norm.weight")), self.norm(k, part("attn_k_norm.weight"))
        local = self.kind == FEATURES_OF_GEMMA and (layer + 1) % GLOBAL_EVERY != 0
        base = LOCAL_ROPE_BASE if local else self.base
        q, k = self.rope(q, base), self.rope(k, base)
        behind = np.arange(rows)[:, None] - np.arange(rows)[None]
        seen = (behind >= 0) & ((behind < self.window) if local else True)
        out = np.empty_like(q)
        for head in range(self.heads):
            of = head // (self.heads // self.kv_heads)
            scores = np.where(seen, q[:, head] / np.sqrt(np.float32(self.head_dim)) @ k[:, of].T, -np.inf)
            shares = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, head] = shares / shares.sum(-1, keepdims=True) @ v[:, of]
        return out.reshape(rows, -1) @ part("attn_output.weight").T

    def mlp(self, x: np.ndarray, layer: int) -> np.ndarray:
        gate, up = (x @ self.weights[f"blk.{layer}.ffn_{name}.weight"].T for name in ("gate", "up"))
        if self.kind == FEATURES_OF_GEMMA:
            active = 0.5 * gate * (1 + np.tanh(np.float32(0.7978845608) * (gate + 0.044715 * gate**3)))
        else:
            active = gate / (1 + np.exp(-np.maximum(gate, -80)))
        return (active * up) @ self.weights[f"blk.{layer}.ffn_down.weight"].T

    def logprobs(self, tokens: list[int]) -> np.ndarray:
        """[T, V]: of what follows each token."""
        table = self.weights["token_embd.weight"]
        gemma = self.kind == FEATURES_OF_GEMMA
        x = table[tokens] * np.float32(np.sqrt(self.width) if gemma else 1)
        for layer in range(self.layers):
            scope = f"blk.{layer}."
            y = self.attention(self.norm(x, self.weights[scope + "attn_norm.weight"]), layer)
            x = x + (self.norm(y, self.weights[scope + "post_attention_norm.weight"]) if gemma else y)
            y = self.mlp(self.norm(x, self.weights[scope + "ffn_norm.weight"]), layer)
            x = x + (self.norm(y, self.weights[scope + "post_ffw_norm.weight"]) if gemma else y)
        logits = self.norm(x, self.weights["output_norm.weight"]) @ self.weights.get("output.weight", table).T
        logits -= logits.max(-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))

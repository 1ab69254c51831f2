# SPDX-License-Identifier: Apache-2.0
"""The Qwen3 architecture in PyTorch, for training only.

Parameter names are those of a Hugging Face Qwen3 checkpoint, so the state dict is the export. Shapes in comments:
B sequences, T tokens, H query heads, K key heads, D head dim.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class Shape:
    vocab_size: int = 2048
    hidden_size: int = 192
    intermediate_size: int = 512
    num_hidden_layers: int = 6
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 64
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6
    max_position_embeddings: int = 2048


class RmsNormFunction(torch.autograd.Function):
    """RMS norm with few passes over memory, which is what limits a CPU here."""

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, eps: float) -> Tensor:
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        scale = torch.rsqrt(norm.square() / x.shape[-1] + eps)
        unit = x * scale
        ctx.save_for_backward(unit, weight, scale)
        return unit * weight

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        unit, weight, scale = ctx.saved_tensors
        product = grad * unit
        along = (product @ weight).unsqueeze(-1) / -weight.shape[0]
        grad_x = (grad * weight).addcmul_(unit, along).mul_(scale)
        return grad_x, product.flatten(0, -2).sum(0), None


class RmsNorm(nn.Module):
    def __init__(self, width: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return RmsNormFunction.apply(x, self.weight, self.eps)


class RotateFunction(torch.autograd.Function):
    """Rotary position embedding, first half against second half; the inverse rotation is its gradient."""

    @staticmethod
    def forward(ctx, x: Tensor, cos: Tensor, signed_sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, signed_sin)
        return (x * cos).addcmul_(x.roll(x.shape[-1] // 2, -1), signed_sin)

    @staticmethod
    def backward(ctx, grad: Tensor) -> tuple[Tensor, None, None]:
        cos, signed_sin = ctx.saved_tensors
        return (grad * cos).addcmul_(grad.roll(grad.shape[-1] // 2, -1), -signed_sin), None, None


def rope_angles(shape: Shape, length: int) -> tuple[Tensor, Tensor]:
    """cos, and sin with the sign that each half gets; [T, 1, D] both."""
    frequencies = shape.rope_theta ** (-torch.arange(0, shape.head_dim, 2).float() / shape.head_dim)
    angles = torch.outer(torch.arange(length).float(), frequencies).unsqueeze(1)
    return angles.cos().repeat(1, 1, 2), torch.cat((-angles.sin(), angles.sin()), dim=-1)


class Attention(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        rows, kv_rows = shape.num_attention_heads * shape.head_dim, shape.num_key_value_heads * shape.head_dim
        self.q_proj = nn.Linear(shape.hidden_size, rows, bias=False)
        self.k_proj = nn.Linear(shape.hidden_size, kv_rows, bias=False)
        self.v_proj = nn.Linear(shape.hidden_size, kv_rows, bias=False)
        self.o_proj = nn.Linear(rows, shape.hidden_size, bias=False)
        self.q_norm = RmsNorm(shape.head_dim, shape.rms_norm_eps)
        self.k_norm = RmsNorm(shape.head_dim, shape.rms_norm_eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, length, _ = x.shape
        split = (batch, length, -1, self.shape.head_dim)
        rotate = RotateFunction.apply
        q = rotate(self.q_norm(self.q_proj(x).view(split)), cos, sin).transpose(1, 2)  # [B, H, T, D]
        k = rotate(self.k_norm(self.k_proj(x).view(split)), cos, sin).transpose(1, 2)  # [B, K, T, D]
        v = self.v_proj(x).view(split).transpose(1, 2)
        groups = self.shape.num_attention_heads // self.shape.num_key_value_heads
        k, v = k.repeat_interleave(groups, dim=1), v.repeat_interleave(groups, dim=1)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(out.transpose(1, 2).reshape(batch, length, -1))


class Mlp(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.up_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.self_attn, self.mlp = Attention(shape), Mlp(shape)
        self.input_layernorm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)
        self.post_attention_layernorm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, shape: Shape):
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.num_hidden_layers))
        self.norm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)


class Qwen3(nn.Module):
    """Causal language model with the embedding as its output head."""

    def __init__(self, shape: Shape):
        super().__init__()
        self.shape = shape
        self.model = Body(shape)
        residual_std = 0.02 / (2 * shape.num_hidden_layers) ** 0.5
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=residual_std if "o_proj" in name or "down_proj" in name else 0.02)

    def hidden(self, ids: Tensor) -> Tensor:
        cos, sin = rope_angles(self.shape, ids.shape[1])
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x, cos, sin)
        return self.model.norm(x)

    def loss(self, ids: Tensor, learn: Tensor) -> Tensor:
        """Summed cross-entropy of the tokens where `learn` [B, T] is true; only these reach the head."""
        wanted = learn[:, 1:]
        rows = self.hidden(ids[:, :-1])[wanted]
        return F.cross_entropy(rows @ self.model.embed_tokens.weight.T, ids[:, 1:][wanted], reduction="sum")

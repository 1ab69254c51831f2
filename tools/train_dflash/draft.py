# SPDX-License-Identifier: Apache-2.0
"""A DFlash draft (https://arxiv.org/abs/2602.06036) in PyTorch, as it is trained: many blocks of a sequence at once.

A few decoder layers that draft a block of tokens in one pass: its rows are the last known token and masks, embedded by
the target, and attend to each other in both directions and to the context, which is what some layers of the target gave
for the tokens before. Parameter names and configuration are those of published drafts. Shapes in comments: B sequences,
T tokens, A blocks of a sequence, S rows of a block, H heads, D head dim.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers import PretrainedConfig


@dataclass(frozen=True)
class DraftShape:
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    rms_norm_eps: float
    rope_theta: float
    max_position_embeddings: int
    block_size: int
    mask_token_id: int
    target_layer_ids: tuple[int, ...]
    num_target_layers: int

    def config(self) -> dict:
        """config.json of a published draft."""
        own = ("mask_token_id", "target_layer_ids")
        plain = {key: value for key, value in vars(self).items() if key not in own}
        return {
            "architectures": ["DFlashDraftModel"],
            "model_type": "qwen3",
            **plain,
            "layer_types": ["full_attention"] * self.num_hidden_layers,
            "attention_bias": False,
            "attention_dropout": 0.0,
            "hidden_act": "silu",
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
            "dflash_config": {key: vars(self)[key] for key in own},
        }


def shape_for(target: PretrainedConfig, **chosen: object) -> DraftShape:
    """The target's sizes, but for those that are given."""
    rope = getattr(target, "rope_parameters", None) or {}
    heads = target.num_attention_heads
    sizes = {
        "hidden_size": target.hidden_size,
        "intermediate_size": target.intermediate_size,
        "num_attention_heads": heads,
        "num_key_value_heads": target.num_key_value_heads,
        "head_dim": getattr(target, "head_dim", None) or target.hidden_size // heads,
        "vocab_size": target.vocab_size,
        "rms_norm_eps": target.rms_norm_eps,
        "rope_theta": rope.get("rope_theta") or getattr(target, "rope_theta", 10000.0),
        "max_position_embeddings": target.max_position_embeddings,
        "num_target_layers": target.num_hidden_layers,
    }
    return DraftShape(**(sizes | {key: value for key, value in chosen.items() if value is not None}))


def default_layers(layer_count: int, taps: int) -> tuple[int, ...]:
    """Evenly from the target's second layer to its third last."""
    if taps == 1:
        return (layer_count // 2,)
    return tuple(max(0, round(1 + i * (layer_count - 4) / (taps - 1))) for i in range(taps))


class RmsNorm(nn.Module):
    def __init__(self, width: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def rotated(x: Tensor, places: Tensor, theta: float) -> Tensor:
    """Rotary position embedding, first half against second half: x [B, H, N, D] at places [B, N]."""
    half = x.shape[-1] // 2
    frequencies = theta ** (-torch.arange(half, device=x.device) / half)
    angles = (places.unsqueeze(-1) * frequencies).unsqueeze(1)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.split(half, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


class Attention(nn.Module):
    def __init__(self, shape: DraftShape):
        super().__init__()
        self.shape = shape
        rows, kv_rows = shape.num_attention_heads * shape.head_dim, shape.num_key_value_heads * shape.head_dim
        self.q_proj = nn.Linear(shape.hidden_size, rows, bias=False)
        self.k_proj = nn.Linear(shape.hidden_size, kv_rows, bias=False)
        self.v_proj = nn.Linear(shape.hidden_size, kv_rows, bias=False)
        self.o_proj = nn.Linear(rows, shape.hidden_size, bias=False)
        self.q_norm = RmsNorm(shape.head_dim, shape.rms_norm_eps)
        self.k_norm = RmsNorm(shape.head_dim, shape.rms_norm_eps)

    def heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.shape.head_dim)).transpose(1, 2)

    def forward(self, rows: Tensor, context: Tensor, blocks: Blocks) -> Tensor:
        """rows [B, A * S, hidden], context [B, T, hidden] -> [B, A * S, hidden]."""
        theta = self.shape.rope_theta
        every = torch.cat((context, rows), 1)
        places = torch.cat((blocks.context_places.expand(len(rows), -1), blocks.places), 1)
        q = rotated(self.q_norm(self.heads(self.q_proj(rows))), blocks.places, theta)
        k = rotated(self.k_norm(self.heads(self.k_proj(every))), places, theta)
        v = self.heads(self.v_proj(every))
        groups = self.shape.num_attention_heads // self.shape.num_key_value_heads
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=blocks.visible)
        return self.o_proj(out.transpose(1, 2).flatten(-2))


class Mlp(nn.Module):
    def __init__(self, shape: DraftShape):
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.up_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape: DraftShape):
        super().__init__()
        self.self_attn, self.mlp = Attention(shape), Mlp(shape)
        self.input_layernorm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)
        self.post_attention_layernorm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)

    def forward(self, x: Tensor, context: Tensor, blocks: Blocks) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), context, blocks)
        return x + self.mlp(self.post_attention_layernorm(x))


class Blocks:
    """Blocks of sequences: anchors [B, A] are the places of their first tokens; lengths [B, A], at most `size`, their rows.

    A block sees the context before its anchor and its own rows, those beyond its length excepted.
    """

    def __init__(self, anchors: Tensor, lengths: Tensor, size: int, context_length: int):
        steps = torch.arange(size, device=anchors.device)
        self.places = (anchors.unsqueeze(-1) + steps).flatten(1)  # [B, A * S]
        self.context_places = torch.arange(context_length, device=anchors.device).unsqueeze(0)
        block = torch.arange(anchors.shape[1], device=anchors.device).repeat_interleave(size)
        before = self.context_places < anchors.repeat_interleave(size, 1).unsqueeze(-1)  # [B, A * S, T]
        there = (steps < lengths.unsqueeze(-1)).flatten(1)  # [B, A * S]
        own = (block.unsqueeze(-1) == block) & there.unsqueeze(1)
        self.visible = torch.cat((before, own), -1).unsqueeze(1)


class DflashDraft(nn.Module):
    def __init__(self, shape: DraftShape):
        super().__init__()
        self.shape = shape
        self.fc = nn.Linear(len(shape.target_layer_ids) * shape.hidden_size, shape.hidden_size, bias=False)
        self.hidden_norm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.num_hidden_layers))
        self.norm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.5 * parameter.shape[1] ** -0.5)

    def forward(self, features: Tensor, embedded: Tensor, blocks: Blocks) -> Tensor:
        """features [B, T, taps * hidden], the blocks' token rows [B, A * S, hidden] -> final rows [B, A * S, hidden]."""
        context = self.hidden_norm(self.fc(features))
        x = embedded
        for layer in self.layers:
            x = layer(x, context, blocks)
        return self.norm(x)

    def save(self, folder: Path) -> None:
        """A folder that `saker --draft` takes."""
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: tensor.detach().to("cpu", torch.bfloat16) for name, tensor in self.state_dict().items()}
        unfinished = folder / "model.safetensors.tmp"
        save_file(tensors, unfinished, metadata={"format": "pt"})
        unfinished.rename(folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(self.shape.config(), indent=2) + "\n")

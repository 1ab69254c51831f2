# SPDX-License-Identifier: Apache-2.0
"""Train an EAGLE-3 head: `python train_eagle3.py --target models/demo --answers FILE --out DIR`.

One decoder layer that guesses the next token but one from what some of the target's layers gave and the next token, and the
tokens after it from its own rows. It has a head of its own for the tokens that the answers have most. Names and formulas
are those of published heads. DIR/draft is what `saker --draft` takes; the training may be stopped at any time and goes on
with the same DIR.

Shapes in comments: B sequences, T tokens, A places of a sequence where drafting starts, H heads, D head dim.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "train_dflash"))

from answers import Answer  # noqa: E402
from chains import Head, parser_of, take, train  # noqa: E402
from draft import Mlp, RmsNorm, rotated, shape_for  # noqa: E402
from target import Target  # noqa: E402


class Attention(nn.Module):
    """Reads the token and the hidden state side by side."""

    def __init__(self, shape):
        super().__init__()
        rows, kv_rows = shape.num_attention_heads * shape.head_dim, shape.num_key_value_heads * shape.head_dim
        self.q_proj = nn.Linear(2 * shape.hidden_size, rows, bias=False)
        self.k_proj = nn.Linear(2 * shape.hidden_size, kv_rows, bias=False)
        self.v_proj = nn.Linear(2 * shape.hidden_size, kv_rows, bias=False)
        self.o_proj = nn.Linear(rows, shape.hidden_size, bias=False)


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.self_attn, self.mlp = Attention(shape), Mlp(shape)
        self.input_layernorm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)
        self.hidden_norm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)
        self.post_attention_layernorm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)

    def joined(self, embedded: Tensor, hidden: Tensor) -> Tensor:
        return torch.cat((self.input_layernorm(embedded), self.hidden_norm(hidden)), -1)

    def heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.shape.head_dim)).transpose(1, 2)

    def keys_and_values(self, x: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """x [B, N, 2 hidden] at places [B, N] -> [B, H, N, D] both."""
        groups = self.shape.num_attention_heads // self.shape.num_key_value_heads
        keys = rotated(self.heads(self.self_attn.k_proj(x)), places, self.shape.rope_theta)
        values = self.heads(self.self_attn.v_proj(x))
        return keys.repeat_interleave(groups, 1), values.repeat_interleave(groups, 1)

    def queries(self, x: Tensor, places: Tensor) -> Tensor:
        return rotated(self.heads(self.self_attn.q_proj(x)), places, self.shape.rope_theta) * self.shape.head_dim**-0.5

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        x = x + self.self_attn.o_proj(attended.transpose(1, 2).flatten(-2))
        return x + self.mlp(self.post_attention_layernorm(x))


class Eagle3(Head):
    def __init__(self, shape, known: Tensor):
        """`known`: the tokens of its head, in order."""
        super().__init__()
        self.shape = shape
        self.fc = nn.Linear(len(shape.target_layer_ids) * shape.hidden_size, shape.hidden_size, bias=False)
        self.midlayer = Layer(shape)
        self.norm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)
        self.lm_head = nn.Linear(shape.hidden_size, len(known), bias=False)
        self.register_buffer("d2t", known - torch.arange(len(known)))
        self.register_buffer("t2d", torch.zeros(shape.vocab_size, dtype=torch.bool).index_fill(0, known, True))
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.5 * parameter.shape[1] ** -0.5)

    def features(self, target: Target, ids: Tensor) -> Tensor:
        return target.features(ids, self.shape.target_layer_ids)

    def logits(self, rows: Tensor, target: Target) -> Tensor:
        return self.lm_head(self.norm(rows))

    def indices(self, tokens: Tensor) -> Tensor:
        places = torch.where(self.t2d, self.t2d.cumsum(0) - 1, -100)
        return torch.where(tokens >= 0, places[tokens.clamp(min=0)], tokens)

    def tokens(self, indices: Tensor) -> Tensor:
        return indices + self.d2t[indices]

    def forward(self, embedded: Tensor, features: Tensor, starts: Tensor, steps: int, next_rows) -> list[Tensor]:
        """See Head. For the steps after the first, its own rows take the place of the target's."""
        layer = self.midlayer
        hidden = self.fc(features[:, :-1])
        context_places = torch.arange(hidden.shape[1], device=hidden.device).expand(len(hidden), -1)
        joined = layer.joined(embedded[:, 1:], hidden)
        keys, values = layer.keys_and_values(joined, context_places)
        seen = (context_places.unsqueeze(1) <= starts.unsqueeze(-1)).unsqueeze(1)  # [B, 1, A, T - 1]
        own: list[tuple[Tensor, Tensor]] = []  # keys and values of drafted rows, [B, H, A, D] each
        rows = []
        x, pair = take(hidden, starts), take(joined, starts)
        for step in range(steps):
            places = starts + step
            if step > 0:
                own.append(layer.keys_and_values(pair, places))
            q = layer.queries(pair, places)
            scores = [(q @ keys.transpose(-1, -2)).masked_fill(~seen, -torch.inf)]
            scores += [(q * key).sum(-1, keepdim=True) for key, _ in own]
            shares = torch.cat(scores, -1).softmax(-1)
            attended = shares[..., : keys.shape[2]] @ values
            for i, (_, value) in enumerate(own):
                attended = attended + shares[..., keys.shape[2] + i].unsqueeze(-1) * value
            x = layer.finish(x, attended)
            rows.append(x)
            if step + 1 < steps:
                pair = layer.joined(next_rows(step, x), x)
        return rows

    def save(self, folder: Path, target: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: tensor.detach().to("cpu") for name, tensor in self.state_dict().items()}
        tensors = {name: t.to(torch.bfloat16) if t.is_floating_point() else t for name, t in tensors.items()}
        save_file(tensors, folder / "model.safetensors.tmp", metadata={"format": "pt"})
        (folder / "model.safetensors.tmp").rename(folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(self.config(), indent=2) + "\n")

    def config(self) -> dict:
        sizes = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
                 "rms_norm_eps", "rope_theta", "max_position_embeddings")  # fmt: skip
        return {
            "architectures": ["LlamaForCausalLMEagle3"],
            "model_type": "llama",
            **{key: getattr(self.shape, key) for key in sizes},
            "num_hidden_layers": 1,
            "draft_vocab_size": len(self.d2t),
            "hidden_act": "silu",
            "attention_bias": False,
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
            "eagle_config": {
                "eagle_aux_hidden_state_layer_ids": list(self.shape.target_layer_ids),
                "use_aux_hidden_state": True,
            },
        }


def most_used(answers: list[Answer], count: int) -> Tensor:
    """The tokens that the answers have most, in order."""
    used = Counter(token for answer in answers for token in answer.ids[answer.start :])
    return torch.tensor(sorted(token for token, _ in used.most_common(count)))


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--taps", type=int, nargs="+", required=True, help="the target's layers that it reads; 0 is the first")
    parser.add_argument("--tokens-known", type=int, default=1024, help="tokens of its head, at most [1024]")
    options = parser.parse_args()

    def make_head(target: Target, answers: list[Answer]) -> Eagle3:
        shape = shape_for(target.config, num_hidden_layers=1, block_size=0, mask_token_id=0, target_layer_ids=tuple(options.taps))
        return Eagle3(shape, most_used(answers, options.tokens_known))

    train(options, make_head)


if __name__ == "__main__":
    main()

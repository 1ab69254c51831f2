# SPDX-License-Identifier: Apache-2.0
"""Train an MTP head for a Qwen3 target: `python train_mtp.py --target models/demo --answers FILE --out DIR`.

One decoder layer that guesses the next token but one from the target's final row and the next token, and the tokens
after it from its own rows, with the target's embedding and head. Names and formulas are those of the `mtp.` tensors of
Qwen3.5. DIR/draft is what `saker --draft` takes; the training may be stopped at any time and goes on with the same DIR.

Shapes in comments: B sequences, T tokens, A places of a sequence where drafting starts, H heads, D head dim.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "train_dflash"))

from chains import Head, parser_of, take, train  # noqa: E402
from draft import Attention, Mlp, RmsNorm, rotated, shape_for  # noqa: E402
from target import Target  # noqa: E402


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.self_attn, self.mlp = Attention(shape), Mlp(shape)
        self.input_layernorm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)
        self.post_attention_layernorm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)

    def keys_and_values(self, x: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """x [B, N, hidden] at places [B, N] -> [B, H, N, D] both."""
        attention = self.self_attn
        normed = self.input_layernorm(x)
        groups = attention.shape.num_attention_heads // attention.shape.num_key_value_heads
        keys = rotated(attention.k_norm(attention.heads(attention.k_proj(normed))), places, attention.shape.rope_theta)
        values = attention.heads(attention.v_proj(normed))
        return keys.repeat_interleave(groups, 1), values.repeat_interleave(groups, 1)

    def queries(self, x: Tensor, places: Tensor) -> Tensor:
        attention = self.self_attn
        q = attention.q_norm(attention.heads(attention.q_proj(self.input_layernorm(x))))
        return rotated(q, places, attention.shape.rope_theta) * attention.shape.head_dim**-0.5

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        x = x + self.self_attn.o_proj(attended.transpose(1, 2).flatten(-2))
        return x + self.mlp(self.post_attention_layernorm(x))


class Mtp(Head):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        self.fc = nn.Linear(2 * shape.hidden_size, shape.hidden_size, bias=False)
        self.pre_fc_norm_embedding = RmsNorm(shape.hidden_size, shape.rms_norm_eps)
        self.pre_fc_norm_hidden = RmsNorm(shape.hidden_size, shape.rms_norm_eps)
        self.layers = nn.ModuleList([Layer(shape)])
        self.norm = RmsNorm(shape.hidden_size, shape.rms_norm_eps)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.5 * parameter.shape[1] ** -0.5)

    def joined(self, embedded: Tensor, hidden: Tensor) -> Tensor:
        return self.fc(torch.cat((self.pre_fc_norm_embedding(embedded), self.pre_fc_norm_hidden(hidden)), -1))

    def forward(self, embedded: Tensor, hidden: Tensor, starts: Tensor, steps: int, next_rows) -> list[Tensor]:
        """`hidden`: the target's final rows, see Head."""
        layer = self.layers[0]
        context_places = torch.arange(hidden.shape[1] - 1, device=hidden.device).expand(len(hidden), -1)
        keys, values = layer.keys_and_values(self.joined(embedded[:, 1:], hidden[:, :-1]), context_places)
        seen = (context_places.unsqueeze(1) <= starts.unsqueeze(-1)).unsqueeze(1)  # [B, 1, A, T - 1]
        own_keys: list[Tensor] = []  # of drafted rows, [B, H, A, D] each
        own_values: list[Tensor] = []
        rows = []
        x = take(self.joined(embedded[:, 1:], hidden[:, :-1]), starts)
        for step in range(steps):
            places = starts + step
            if step > 0:
                key, value = layer.keys_and_values(x, places)
                own_keys.append(key)
                own_values.append(value)
            q = layer.queries(x, places)
            scores = [(q @ keys.transpose(-1, -2)).masked_fill(~seen, -torch.inf)]
            scores += [(q * key).sum(-1, keepdim=True) for key in own_keys]
            shares = torch.cat(scores, -1).softmax(-1)
            attended = shares[..., : keys.shape[2]] @ values
            for i, value in enumerate(own_values):
                attended = attended + shares[..., keys.shape[2] + i].unsqueeze(-1) * value
            y = self.norm(layer.finish(x, attended))
            rows.append(y)
            if step + 1 < steps:
                x = self.joined(next_rows(step, y), y)
        return rows

    def save(self, folder: Path, target: Path) -> None:
        """A folder with the target's configuration and the head alone."""
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {f"mtp.{name}": tensor.detach().to("cpu", torch.bfloat16) for name, tensor in self.state_dict().items()}
        save_file(tensors, folder / "model.safetensors.tmp", metadata={"format": "pt"})
        (folder / "model.safetensors.tmp").rename(folder / "model.safetensors")
        config = json.loads((target / "config.json").read_text())
        config = {key: value for key, value in config.items() if not key.startswith("quantization")}
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def make_head(target: Target, _: object) -> Mtp:
    return Mtp(shape_for(target.config, num_hidden_layers=1, block_size=0, mask_token_id=0, target_layer_ids=()))


if __name__ == "__main__":
    train(parser_of(__doc__).parse_args(), make_head)

# SPDX-License-Identifier: Apache-2.0
"""Train a smaller model that drafts for the demo model: `python train_small.py --target models/demo --answers FILE --out DIR`.

It learns the target's distribution after every token of its answers. DIR/checkpoint.pt is what export.py turns into a
model folder; the training may be stopped at any time and goes on with the same DIR.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

import torch
import torch.nn.functional as F
from model import Qwen3, Shape
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "train_dflash"))

from answers import Answer, padded  # noqa: E402
from fitting import add_options, fit  # noqa: E402
from target import Target, load_target  # noqa: E402


def answer_rows(group: list[Answer], ids: Tensor) -> Tensor:
    """The places whose next token is one of the answer, [B, T]."""
    places = torch.arange(ids.shape[1])
    starts = torch.tensor([answer.start for answer in group]).unsqueeze(-1)
    ends = torch.tensor([len(answer.ids) for answer in group]).unsqueeze(-1)
    return ((places >= starts - 1) & (places < ends - 1)).to(ids.device)


def loss_of(draft: Qwen3, target: Target, group: list[Answer], options: argparse.Namespace) -> Tensor:
    """Cross-entropy to the target's distribution, per token."""
    ids = padded(group, options.device)
    rows = answer_rows(group, ids)
    hidden = target.final_rows(ids)
    wanted = (hidden[rows].float() @ target.head.float().T).softmax(-1)
    logits = draft.hidden(ids)[rows] @ draft.model.embed_tokens.weight.T
    return F.cross_entropy(logits, wanted)


@torch.no_grad()
def agreement(draft: Qwen3, target: Target, held_out: list[Answer], options: argparse.Namespace) -> float:
    """Share of the tokens of greedy answers that the draft would choose too."""
    right = total = 0
    for answer in held_out:
        ids = padded([answer], options.device)
        guessed = (draft.hidden(ids)[0] @ draft.model.embed_tokens.weight.T).argmax(-1)
        rows = answer_rows([answer], ids)[0]
        right += int((guessed[:-1] == ids[0, 1:])[rows[:-1]].sum())
        total += int(rows.sum())
    return right / max(total, 1)


def train(options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    target = load_target(options.target, options.device, getattr(torch, options.dtype))
    shape = Shape(
        vocab_size=target.config.vocab_size, hidden_size=options.hidden, intermediate_size=options.intermediate,
        num_hidden_layers=options.layers, num_attention_heads=options.heads, num_key_value_heads=options.kv_heads,
    )  # fmt: skip
    draft = Qwen3(shape).to(options.device)
    shutil.copyfile(options.target / "tokenizer.json", options.out / "tokenizer.json")
    def saved(held_out: list[Answer]) -> str:
        torch.save({"model": draft.state_dict(), "shape": asdict(shape)}, options.out / "checkpoint.tmp")
        (options.out / "checkpoint.tmp").rename(options.out / "checkpoint.pt")
        return f"{agreement(draft, target, held_out, options):.3f} of the tokens right"

    fit(draft, options, lambda group, _: loss_of(draft, target, group, options), saved)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--intermediate", type=int, default=320)
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--kv-heads", type=int, default=1)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    train(parse())

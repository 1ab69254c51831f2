# SPDX-License-Identifier: Apache-2.0
"""Train a DFlash draft for a target: `python train.py --target DIR --answers FILE --out DIR`. See README.md beside it.

DIR/draft is what `saker --draft` takes. It is there from the first `--save-every` steps on, so the training may be
stopped at any time; a second start with the same DIR goes on.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random

import torch
import torch.nn.functional as F
from answers import Answer, draw_anchors, every_anchor, padded, tokens_per_round, wanted_tokens
from draft import Blocks, DflashDraft, DraftShape, default_layers, shape_for
from fitting import add_options, fit
from target import Target, load_target
from torch import Tensor

CUT_SHARE = 0.25  # of the blocks: of a random length, since a runtime drafts as many tokens as pay


def draft_logits(draft: DflashDraft, target: Target, ids: Tensor, anchors: Tensor, lengths: Tensor) -> Tensor:
    """Logits of the tokens that each block drafts, [B, A, S - 1, vocab]."""
    shape = draft.shape
    features = target.features(ids, shape.target_layer_ids)
    tokens = torch.full((*anchors.shape, shape.block_size), shape.mask_token_id, device=ids.device)
    tokens[..., 0] = ids.gather(1, anchors)
    blocks = Blocks(anchors, lengths, shape.block_size, ids.shape[1])
    dtype = next(draft.parameters()).dtype
    rows = draft(features.to(dtype), target.embedding[tokens.flatten(1)].to(dtype), blocks)
    return rows.view(*tokens.shape, -1)[..., 1:, :] @ target.head.to(dtype).T


def loss_of(draft: DflashDraft, target: Target, group: list[Answer], options: argparse.Namespace, rng: Random) -> Tensor:
    """Cross-entropy; a block's first tokens weigh more, as those after a wrong one are lost."""
    size = draft.shape.block_size
    ids = padded(group, options.device)
    anchors = draw_anchors(group, options.blocks, rng).to(ids.device)
    cuts = [rng.randint(2, size) if rng.random() < CUT_SHARE else size for _ in range(anchors.numel())]
    lengths = torch.tensor(cuts, device=ids.device).view_as(anchors)
    wanted = wanted_tokens(group, ids, anchors, size)
    steps = torch.arange(1, size, device=ids.device)
    wanted = wanted.masked_fill(steps >= lengths.unsqueeze(-1), -100)
    logits = draft_logits(draft, target, ids, anchors, lengths)
    losses = F.cross_entropy(logits.flatten(0, -2).float(), wanted.flatten(), reduction="none").view_as(wanted)
    weights = torch.exp(-(steps - 1) / options.decay) * (wanted >= 0)
    return (losses * weights).sum() / weights.sum()


@torch.no_grad()
def right_tokens(draft: DflashDraft, target: Target, group: list[Answer], options: argparse.Namespace) -> Tensor:
    """How many tokens of the block after each token of an answer are right, [B, A]."""
    ids = padded(group, options.device)
    anchors = every_anchor(group).to(ids.device)
    lengths = torch.full_like(anchors, draft.shape.block_size)
    guessed = draft_logits(draft, target, ids, anchors, lengths).argmax(-1)
    return (guessed == wanted_tokens(group, ids, anchors, draft.shape.block_size)).cumprod(-1).sum(-1)


def choose_shape(target: Target, options: argparse.Namespace) -> DraftShape:
    layer_count = target.config.num_hidden_layers
    taps = tuple(options.taps) if options.taps else default_layers(layer_count, 5 if layer_count >= 16 else 3)
    if max(taps) > layer_count - 2:
        raise SystemExit(f"--taps {max(taps)}: the target has {layer_count} layers, its last one can't be tapped")
    mask = options.mask_token
    if mask is None:
        mask = target.config.pad_token_id if target.config.pad_token_id is not None else target.config.vocab_size - 1
    return shape_for(
        target.config, num_hidden_layers=options.layers, intermediate_size=options.intermediate,
        num_attention_heads=options.heads, num_key_value_heads=options.kv_heads, block_size=options.block,
        mask_token_id=mask, target_layer_ids=taps,
    )  # fmt: skip


def train(options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    target = load_target(options.target, options.device, getattr(torch, options.dtype))
    draft = DflashDraft(choose_shape(target, options)).to(options.device)

    def saved(held_out: list[Answer]) -> str:
        draft.save(options.out / "draft")
        rounds = tokens_per_round(held_out, options.tokens, lambda group: right_tokens(draft, target, group, options))
        return f"{rounds:.3f} tokens a round"

    fit(draft, options, lambda group, rng: loss_of(draft, target, group, options, rng), saved)


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--layers", type=int, default=5, help="of the draft [5]")
    parser.add_argument("--block", type=int, default=16, help="rows of a block, one more than it drafts [16]")
    parser.add_argument("--taps", type=int, nargs="+", help="layers of the target that it reads [5 or 3, evenly]")
    parser.add_argument("--mask-token", type=int, help="an id that text does not hold [the target's padding, else its last id]")
    for name in ("intermediate", "heads", "kv-heads"):
        parser.add_argument(f"--{name}", type=int, help="[the target's]")
    parser.add_argument("--blocks", type=int, default=16, help="of an answer in one step [16]")
    parser.add_argument("--decay", type=float, default=5.0, help="tokens after which the weight of a loss falls to 1/e [5]")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    train(parse())

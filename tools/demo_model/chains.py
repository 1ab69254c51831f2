# SPDX-License-Identifier: Apache-2.0
"""The training of heads that draft token after token: each learns from chains as they are drafted.

Shapes in comments: B sequences, T tokens, A places of a sequence where drafting starts, H heads, D head dim.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "train_dflash"))

from answers import Answer, draw_anchors, every_anchor, padded, read_answers, tokens_per_round, wanted_tokens  # noqa: E402
from fitting import add_options, fit  # noqa: E402
from target import Target, load_target  # noqa: E402


class Head(nn.Module):
    """The common part of heads. `forward` drafts `steps` tokens from each start, the place of the last row that the target has run, [B, A].

    Its arguments: embedded [B, T, hidden], the tokens' rows; features [B, T, ...], what the target gave; `next_rows(step, y)`
    gives the embedding of the token after the next, for the next step. -> rows [B, A, hidden] by step, for `logits`.
    """

    def features(self, target: Target, ids: Tensor) -> Tensor:
        return target.final_rows(ids)

    def logits(self, rows: Tensor, target: Target) -> Tensor:
        return rows @ target.head.float().T

    def indices(self, tokens: Tensor) -> Tensor:
        """The places of tokens in `logits`; negative: not there."""
        return tokens

    def tokens(self, indices: Tensor) -> Tensor:
        """The tokens at these places of `logits`."""
        return indices

    def save(self, folder: Path, target: Path) -> None:
        raise NotImplementedError


def take(rows: Tensor, places: Tensor) -> Tensor:
    """rows [B, T, hidden], places [B, A] -> [B, A, hidden]."""
    return rows.gather(1, places.unsqueeze(-1).expand(-1, -1, rows.shape[-1]))


def inputs(head: Head, target: Target, group: list[Answer], options: argparse.Namespace) -> tuple[Tensor, Tensor, Tensor]:
    ids = padded(group, options.device)
    return ids, target.embedding[ids].float(), head.features(target, ids).float()


def loss_of(head: Head, target: Target, group: list[Answer], options: argparse.Namespace, rng: Random) -> Tensor:
    """Cross-entropy of `depth` tokens after some of each answer, the first weighing more; true tokens are read."""
    ids, embedded, features = inputs(head, target, group, options)
    anchors = draw_anchors(group, options.starts, rng).to(ids.device)
    wanted = head.indices(wanted_tokens(group, ids, anchors, options.depth + 1))

    def next_rows(step: int, _: Tensor) -> Tensor:
        return take(embedded, (anchors + step + 1).clamp(max=ids.shape[1] - 1))

    rows = torch.stack(head(embedded, features, anchors - 1, options.depth, next_rows), -2)
    logits = head.logits(rows, target)
    losses = F.cross_entropy(logits.flatten(0, -2), wanted.flatten(), reduction="none").view_as(wanted)
    weights = torch.exp(-torch.arange(options.depth) / options.decay).to(ids.device) * (wanted >= 0)
    return (losses * weights).sum() / weights.sum()


@torch.no_grad()
def right_tokens(head: Head, target: Target, group: list[Answer], options: argparse.Namespace) -> Tensor:
    """How many drafted tokens after each token of an answer are right, [B, A]."""
    ids, embedded, features = inputs(head, target, group, options)
    anchors = every_anchor(group).to(ids.device)

    def guess(y: Tensor) -> Tensor:
        return head.tokens(head.logits(y, target).argmax(-1))

    def next_rows(_: int, y: Tensor) -> Tensor:
        return target.embedding[guess(y)].float()

    guessed = [guess(y) for y in head(embedded, features, anchors - 1, options.depth, next_rows)]
    wanted = wanted_tokens(group, ids, anchors, options.depth + 1)
    return (torch.stack(guessed, -1) == wanted).cumprod(-1).sum(-1)


def train(options: argparse.Namespace, make_head: Callable[[Target, list[Answer]], Head]) -> None:
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    target = load_target(options.target, options.device, getattr(torch, options.dtype))
    head = make_head(target, read_answers(options.answers, options.context)).to(options.device)

    def saved(held_out: list[Answer]) -> str:
        head.save(options.out / "draft", options.target)
        rounds = tokens_per_round(held_out, options.tokens, lambda group: right_tokens(head, target, group, options))
        return f"{rounds:.3f} tokens a round"

    fit(head, options, lambda group, rng: loss_of(head, target, group, options, rng), saved)


def parser_of(text: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--depth", type=int, default=7, help="tokens that it learns to draft at once [7]")
    parser.add_argument("--starts", type=int, default=8, help="places of an answer in one step [8]")
    parser.add_argument("--decay", type=float, default=4.0, help="tokens after which the weight of a loss falls to 1/e [4]")
    return parser

# SPDX-License-Identifier: Apache-2.0
"""Batches of a target's answers, from the lines that continuations.py writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from torch import Tensor

CHUNK = 2000  # answers that are sorted by length together


@dataclass(frozen=True)
class Answer:
    ids: list[int]  # prompt and answer
    start: int  # of the answer
    greedy: bool


def read_answers(path: Path, context: int) -> list[Answer]:
    """Those of two tokens and more, cut after `context` tokens."""
    answers = []
    for line in path.read_text().splitlines():
        row = json.loads(line)
        ids = (row["prompt"] + row["answer"])[:context]
        if len(ids) - len(row["prompt"]) >= 2:
            answers.append(Answer(ids, len(row["prompt"]), row["greedy"]))
    return answers


def split(answers: list[Answer], held_out: int) -> tuple[list[Answer], list[Answer]]:
    """All but the last greedy answers, and these."""
    greedy = [i for i, answer in enumerate(answers) if answer.greedy]
    chosen = greedy[max(0, len(greedy) - held_out) :]
    aside = set(chosen)
    return [answer for i, answer in enumerate(answers) if i not in aside], [answers[i] for i in chosen]


def batches(answers: list[Answer], tokens: int, rng: Random) -> Iterator[list[Answer]]:
    """All answers once, in random order, in groups of similar length and about `tokens` tokens."""
    order = answers[:]
    rng.shuffle(order)
    for first in range(0, len(order), CHUNK):
        groups: list[list[Answer]] = [[]]
        for answer in sorted(order[first : first + CHUNK], key=lambda a: len(a.ids)):
            if groups[-1] and (len(groups[-1]) + 1) * len(answer.ids) > tokens:
                groups.append([])
            groups[-1].append(answer)
        rng.shuffle(groups)
        yield from groups


def padded(group: list[Answer], device: str) -> Tensor:
    """ids [B, T]; what stands behind the end of a sequence does not matter, as nothing looks back from there."""
    ids = torch.zeros(len(group), max(len(answer.ids) for answer in group), dtype=torch.long)
    for row, answer in enumerate(group):
        ids[row, : len(answer.ids)] = torch.tensor(answer.ids)
    return ids.to(device)


def draw_anchors(group: list[Answer], blocks: int, rng: Random) -> Tensor:
    """For each answer places of `blocks` tokens of it, [B, A]; the last token has nothing behind it."""
    rows = []
    for answer in group:
        places = range(answer.start, len(answer.ids) - 1)
        rows.append(rng.sample(places, blocks) if len(places) >= blocks else rng.choices(places, k=blocks))
    return torch.tensor(rows)


def every_anchor(group: list[Answer]) -> Tensor:
    most = max(len(answer.ids) - 1 - answer.start for answer in group)
    return torch.tensor([[min(answer.start + i, len(answer.ids) - 2) for i in range(most)] for answer in group])


def wanted_tokens(group: list[Answer], ids: Tensor, anchors: Tensor, size: int) -> Tensor:
    """What follows each anchor [B, A, S - 1]; -100 behind the end."""
    places = anchors.unsqueeze(-1) + torch.arange(1, size, device=ids.device)
    ends = torch.tensor([len(answer.ids) for answer in group], device=ids.device).view(-1, 1, 1)
    tokens = ids.gather(1, places.clamp(max=ids.shape[1] - 1).flatten(1)).view_as(places)
    return tokens.masked_fill(places >= ends, -100)


def tokens_per_round(answers: list[Answer], tokens: int, right_of: Callable[[list[Answer]], Tensor]) -> float:
    """Of greedy decoding; `right_of` says how many drafted tokens after each token of the answers are right, [B, A]."""
    committed = rounds = 0
    for group in batches(answers, tokens, Random(0)):
        for answer, row in zip(group, right_of(group).tolist(), strict=True):
            place, length = 0, len(answer.ids) - 1 - answer.start
            while place < length:
                place += 1 + row[place]
                rounds += 1
            committed += length
    return committed / max(rounds, 1)

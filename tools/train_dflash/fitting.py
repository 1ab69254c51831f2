# SPDX-License-Identifier: Apache-2.0
"""The training loop that all drafts share: a schedule, progress, and files from which a second start goes on."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random

import torch
from answers import Answer, batches, read_answers, split
from torch import Tensor, nn
from weights import read_weights

REPORT_EVERY = 50


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", type=Path, required=True, help="folder of the model that is drafted for")
    parser.add_argument("--answers", type=Path, required=True, help="what it says, by continuations.py")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="folder of a draft whose weights are where the training begins")
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--tokens", type=int, default=8192, help="of the answers in one step, prompts included [8192]")
    parser.add_argument("--context", type=int, default=2048, help="tokens after which an answer is cut [2048]")
    parser.add_argument("--rate", type=float, default=6e-4, help="peak learning rate [6e-4]")
    parser.add_argument("--warmup", type=int, default=200)
    parser.add_argument("--held-out", type=int, default=200, help="greedy answers that only measure [200]")
    parser.add_argument("--save-every", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or mps [cpu]")
    parser.add_argument("--dtype", default="float32", help="of the target: float32 or bfloat16 [float32]")


def rate(step: int, options: argparse.Namespace) -> float:
    """Linear warm-up, then a cosine down to 2 % of the peak."""
    warm = min(1.0, (step + 1) / options.warmup)
    return options.rate * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1.0, step / options.steps))))


def fit(
    draft: nn.Module,
    options: argparse.Namespace,
    loss_of: Callable[[list[Answer], Random], Tensor],
    saved: Callable[[list[Answer]], str],
) -> None:
    """All steps. `saved` writes the draft and says, for the report, how good it is on answers that were held out."""
    optimizer = torch.optim.AdamW(draft.parameters(), lr=options.rate, betas=(0.9, 0.98), weight_decay=0.01)
    learned, held_out = split(read_answers(options.answers, options.context), options.held_out)
    print(f"{sum(p.numel() for p in draft.parameters())} parameters, {len(learned)} answers", flush=True)
    step, epoch = 0, 0
    checkpoint = options.out / "training.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint)
        draft.load_state_dict(state["draft"])
        optimizer.load_state_dict(state["optimizer"])
        step, epoch = state["step"], state["epoch"]
    elif options.start:
        weights = read_weights(options.start)
        draft.load_state_dict({name.removeprefix("mtp."): tensor for name, tensor in weights.items()})

    def save() -> None:
        state = {"draft": draft.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "epoch": epoch}
        torch.save(state, checkpoint.with_suffix(".tmp"))
        checkpoint.with_suffix(".tmp").rename(checkpoint)
        print(f"step {step}: {saved(held_out)}", flush=True)

    start, losses = time.monotonic(), []
    for epoch in count(epoch):
        rng = Random(options.seed * 1_000_003 + epoch)
        for group in batches(learned, options.tokens, rng):
            if step >= options.steps:
                return save()
            for parameters in optimizer.param_groups:
                parameters["lr"] = rate(step, options)
            loss = loss_of(group, rng)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(draft.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
            step += 1
            if step % REPORT_EVERY == 0:
                mean = sum(losses[-REPORT_EVERY:]) / len(losses[-REPORT_EVERY:])
                print(f"step {step} of {options.steps}: loss {mean:.4f} after {time.monotonic() - start:.0f} s", flush=True)
            if step % options.save_every == 0:
                save()

# SPDX-License-Identifier: Apache-2.0
"""Train the demo model: `python train.py --out DIR`, about an hour on two cores. The defaults made models/demo.

DIR gets tokenizer.json and, every few minutes, checkpoint.pt; a second start with the same DIR goes on from there.
`export.py` turns a checkpoint of any age into a model folder.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that wait do not take the cores of other work

import torch
from data import batches, chunk, encode, train_tokenizer
from generator import Generator
from model import Qwen3, Shape
from tokenizers import Tokenizer

SAVE_EVERY_S = 180
REPORT_EVERY = 50


@dataclass
class Options:
    out: Path
    steps: int = 3600
    tokens: int = 2048  # positions per step
    context: int = 640
    peak_rate: float = 2.5e-3
    warmup: int = 100
    decay_share: float = 0.35
    seed: int = 1
    threads: int = 2


def rate(step: int, options: Options) -> float:
    """Linear warm-up, the peak, and over the last part a cosine down to 1 % of the peak."""
    if step < options.warmup:
        return options.peak_rate * (step + 1) / options.warmup
    decay_start = int(options.steps * (1 - options.decay_share))
    progress = max(0.0, (step - decay_start) / max(1, options.steps - decay_start))
    return options.peak_rate * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress))))


def make_optimizer(model: Qwen3, options: Options) -> torch.optim.AdamW:
    matrices = [p for p in model.parameters() if p.dim() == 2]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=options.peak_rate, betas=(0.9, 0.98), fused=True)


@torch.no_grad()
def held_out_loss(model: Qwen3, tokenizer: Tokenizer, count: int = 300) -> float:
    """Mean negative log-likelihood per answer token over reserved questions."""
    generator = Generator(7, reserved=True)
    examples = [encode(tokenizer, generator.conversation()) for _ in range(count)]
    total = weight = 0.0
    for ids, learn in batches(examples, 4096, Random(0)):
        learned = float(learn[:, 1:].sum())
        total += float(model.loss(ids, learn)) * learned
        weight += learned
    return total / weight


def prepare_tokenizer(options: Options, shape: Shape) -> Tokenizer:
    path = options.out / "tokenizer.json"
    if not path.exists():
        train_tokenizer(options.seed, shape.vocab_size).save(str(path))
    return Tokenizer.from_file(str(path))


def train(options: Options, shape: Shape) -> list[float]:
    """Run all steps; returns the loss of each."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    tokenizer = prepare_tokenizer(options, shape)
    model = Qwen3(shape)
    optimizer = make_optimizer(model, options)
    losses: list[float] = []
    first_chunk = 0
    checkpoint = options.out / "checkpoint.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        losses, first_chunk = state["losses"], state["chunk"]
    print(f"{sum(p.numel() for p in model.parameters())} parameters, step {len(losses)} of {options.steps}", flush=True)

    def save(next_chunk: int) -> None:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses,
                 "chunk": next_chunk, "shape": asdict(shape)}  # fmt: skip
        torch.save(state, checkpoint.with_suffix(".tmp"))
        checkpoint.with_suffix(".tmp").rename(checkpoint)

    saved = start = time.monotonic()
    index = first_chunk
    while len(losses) < options.steps:
        examples = chunk(tokenizer, options.seed, index, options.context)
        index += 1
        for ids, learn in batches(examples, options.tokens, Random(index)):
            losses.append(step(model, optimizer, ids, learn, rate(len(losses), options)))
            if len(losses) % REPORT_EVERY == 0:
                mean = sum(losses[-REPORT_EVERY:]) / REPORT_EVERY
                print(f"step {len(losses)} loss {mean:.4f} {time.monotonic() - start:.0f} s", flush=True)
            if len(losses) >= options.steps:
                break
        if time.monotonic() - saved > SAVE_EVERY_S:
            save(index)
            saved = time.monotonic()
            print(f"step {len(losses)} held-out loss {held_out_loss(model, tokenizer):.4f}", flush=True)
    save(index)
    final = held_out_loss(model, tokenizer)
    print(f"held-out loss {final:.4f} perplexity {math.exp(final):.3f}", flush=True)
    return losses


def step(model: Qwen3, optimizer: torch.optim.Optimizer, ids: torch.Tensor, learn: torch.Tensor, lr: float) -> float:
    for group in optimizer.param_groups:
        group["lr"] = lr
    loss = model.loss(ids, learn)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item()


def main() -> None:
    defaults = Options(out=Path())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    for name in ("steps", "tokens", "seed", "threads"):
        parser.add_argument(f"--{name}", type=int, default=getattr(defaults, name))
    train(Options(**vars(parser.parse_args())), Shape())


if __name__ == "__main__":
    main()

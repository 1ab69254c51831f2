# SPDX-License-Identifier: Apache-2.0
"""Train the demo model: `python train.py --out DIR`, below an hour on two cores. With `--start MODEL_DIR` it goes on from that
model's weights with the last phase of what is learned.

DIR gets tokenizer.json and, about every 90 steps, checkpoint.pt; a second start with the same DIR goes on from there.
`export.py` turns a checkpoint of any age into a model folder.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import torch
from data import batches, chunk, encode, train_tokenizer
from generator import Generator
from model import Qwen3, Shape
from tokenizers import Tokenizer
from torch import distributed

sys.path.append(str(Path(__file__).resolve().parents[1] / "train_dflash"))  # behind this folder: both have a train.py

from weights import read_weights  # noqa: E402

REPORT_EVERY = 50
PHASE_STARTS = (0.65, 0.79)  # of the steps; the phases are those of generator.Generator
MEETING = "meeting"  # the file where the processes find each other

Batch = tuple[torch.Tensor, torch.Tensor]  # ids and what is learned, [B, T]


@dataclass
class Options:
    out: Path
    steps: int = 2400
    tokens: int = 2048  # positions per step
    context: int = 512
    peak_rate: float = 2.5e-3
    warmup: int = 100
    decay_share: float = 0.35
    seed: int = 1
    processes: int = 2
    start: Path | None = None


def rate(step: int, options: Options) -> float:
    """Linear warm-up, the peak, and over the last part a cosine down to 1 % of the peak."""
    if step < options.warmup:
        return options.peak_rate * (step + 1) / options.warmup
    decay_start = options.steps * (1 - options.decay_share)
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
        total += float(model.loss(ids, learn))
        weight += float(learn[:, 1:].sum())
    return total / weight


def prepare_tokenizer(options: Options, shape: Shape) -> Tokenizer:
    path = options.out / "tokenizer.json"
    if not path.exists() and options.start:
        shutil.copy(options.start / "tokenizer.json", path)
    elif not path.exists():
        train_tokenizer(options.seed, shape.vocab_size).save(str(path))
    return Tokenizer.from_file(str(path))


def train(options: Options, shape: Shape) -> None:
    """Run all steps, in `options.processes` processes that share the rows of each batch."""
    options.out.mkdir(parents=True, exist_ok=True)
    prepare_tokenizer(options, shape)
    (options.out / MEETING).unlink(missing_ok=True)  # left by a run that was stopped
    if options.processes == 1:
        run(0, options, shape)
    else:
        torch.multiprocessing.spawn(run, (options, shape), nprocs=options.processes)


def run(rank: int, options: Options, shape: Shape) -> None:
    """One process: every rank holds the same model and makes the same updates; rank 0 reports and saves."""
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    if options.processes > 1:
        meeting = (options.out / MEETING).resolve().as_uri()
        distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=options.processes)
    tokenizer = prepare_tokenizer(options, shape)
    model = Qwen3(shape)
    optimizer = make_optimizer(model, options)
    losses: list[float] = []
    index = 0
    checkpoint = options.out / "checkpoint.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        losses, index = state["losses"], state["chunk"]
    elif options.start:
        model.load_state_dict(read_weights(options.start))

    def report(text: str) -> None:
        if rank == 0:
            print(f"step {len(losses)} of {options.steps}: {text}", flush=True)

    report(f"{sum(p.numel() for p in model.parameters())} parameters")
    start = time.monotonic()
    while len(losses) < options.steps:
        phase = sum(options.start is not None or len(losses) >= share * options.steps for share in PHASE_STARTS)
        generator = Generator(options.seed * 1_000_003 + index, phase=phase)
        examples = chunk(tokenizer, generator, options.context)
        index += 1
        for ids, learn in batches(examples, options.tokens, Random(index)):
            losses.append(step(model, optimizer, (ids, learn), rate(len(losses), options), rank, options.processes))
            if len(losses) % REPORT_EVERY == 0:
                report(f"loss {sum(losses[-REPORT_EVERY:]) / REPORT_EVERY:.4f} after {time.monotonic() - start:.0f} s")
            if len(losses) >= options.steps:
                break
        if rank == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "losses": losses,
                     "chunk": index, "shape": asdict(shape)}  # fmt: skip
            torch.save(state, checkpoint.with_suffix(".tmp"))
            checkpoint.with_suffix(".tmp").rename(checkpoint)
    if rank == 0:
        held_out = held_out_loss(model, tokenizer)
        report(f"held-out loss {held_out:.4f}, perplexity {math.exp(held_out):.3f}")
    if options.processes > 1:
        distributed.destroy_process_group()


def step(model: Qwen3, optimizer: torch.optim.Optimizer, batch: Batch, lr: float, rank: int, processes: int) -> float:
    """One update with this rank's rows of the batch; the gradients of all ranks are summed. Returns the mean loss."""
    for group in optimizer.param_groups:
        group["lr"] = lr
    ids, learn = (part[rank::processes] for part in batch)
    optimizer.zero_grad()
    if len(ids):
        loss = model.loss(ids, learn) / batch[1][:, 1:].sum()
        loss.backward()
    parameters = list(model.parameters())
    parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    flat = torch.cat([part.flatten() for part in parts] + [loss.detach().view(1) if len(ids) else torch.zeros(1)])
    if processes > 1:
        distributed.all_reduce(flat)
    for parameter, grad in zip(parameters, flat[:-1].split([p.numel() for p in parameters]), strict=True):
        parameter.grad = grad.view_as(parameter)
    torch.nn.utils.clip_grad_norm_(parameters, 1.0)
    optimizer.step()
    return flat[-1].item()


def main() -> None:
    defaults = Options(out=Path())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--start", type=Path, help="a model folder whose weights are where training begins")
    parser.add_argument("--peak-rate", type=float, default=defaults.peak_rate)
    for name in ("steps", "tokens", "seed", "processes"):
        parser.add_argument(f"--{name}", type=int, default=getattr(defaults, name))
    train(Options(**vars(parser.parse_args())), Shape())


if __name__ == "__main__":
    main()

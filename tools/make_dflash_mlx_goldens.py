#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds what the `dflash-mlx` package drafts to the drafts of tests/golden/dflash, in float32 on the CPU.

    python tools/make_dflash_mlx_goldens.py [--out tests/golden/dflash]

Runs after make_dflash_goldens.py and takes its target, its drafts `legacy` and `nested` (the package knows neither an
encoder nor DFlash 2) and their prompts. Writes `golden_mlx.safetensors` beside each golden.safetensors, with the same
tensors. The package looks for a block's size and theta at the root of a configuration, so it is given a copy of that form,
and copies of earlier text, which it puts in a draft's place where text repeats, are switched off.
Needs: dflash-mlx==0.1.8 mlx[cpu]==0.32.4 mlx-lm==0.32.2 safetensors numpy
"""
import argparse
import json
import pathlib
import tempfile

import mlx.core as mx
import numpy as np
from dflash_mlx.draft_backend import EagerDraftBackend
from dflash_mlx.engine.copyspec import CopySpecIndex
from dflash_mlx.engine.target_ops import bind_draft_to_target, resolve_target_ops
from dflash_mlx.runtime import stream_dflash_generate
from dflash_mlx.runtime.context import build_offline_runtime_context
from dflash_mlx.runtime.loading import load_draft_bundle
from mlx_lm.utils import load_model
from safetensors.numpy import load_file, save_file

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/dflash"
NEW, BLOCK = 40, 6
NAMES = ["legacy", "nested"]


def at_root(config):
    """The configuration as the package reads it."""
    own = dict(config["dflash_config"])
    flat = dict(config, block_size=own.pop("block_size", config.get("block_size")), dflash_config=own)
    flat.setdefault("rope_theta", flat.get("rope_parameters", {}).get("rope_theta"))
    return flat


def load_draft(folder):
    with tempfile.TemporaryDirectory() as copy:
        copy = pathlib.Path(copy)
        (copy / "config.json").write_text(json.dumps(at_root(json.loads((folder / "config.json").read_text()))))
        (copy / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
        return load_draft_bundle(copy, lazy=False)[0]


class Recorder(EagerDraftBackend):
    """Drafts as the package does and keeps each round's tokens and logits."""

    def __init__(self):
        self.rounds = []

    def draft_greedy(self, *, target_model, target_ops, draft_cache, draft_context, **rest):
        logits = []

        class Ops:
            embed_tokens = target_ops.embed_tokens

            @staticmethod
            def logits_from_hidden(model, hidden):
                logits.append(target_ops.logits_from_hidden(model, hidden))
                return logits[-1]

        context = draft_cache[0].offset + draft_context.shape[1]
        drafted = super().draft_greedy(target_model=target_model, target_ops=Ops, draft_cache=draft_cache,
                                       draft_context=draft_context, **rest)
        mx.eval(drafted, logits[0])
        self.rounds.append((context, drafted.tolist(), np.array(logits[0][0])))
        return drafted


def greedy(target, ids, count):
    """What the target says by itself, whole passes only."""
    ids = list(ids)
    for _ in range(count):
        ids.append(int(mx.argmax(target(mx.array([ids]))[0, -1])))
    return ids


def record(target, draft, prompt):
    ops = resolve_target_ops(target)
    ops.install_speculative_hooks(target)
    bind_draft_to_target(draft, target, target_ops=ops)
    backend = Recorder()
    events = list(stream_dflash_generate(
        target_model=target, target_ops=ops, draft_model=draft, draft_backend=backend, max_new_tokens=NEW,
        block_tokens=BLOCK, stop_token_ids=[], prompt_tokens_override=prompt,
        runtime_context=build_offline_runtime_context(verify_mode="dflash")))
    tokens = [event.token_id for event in events if type(event).__name__ == "TokenEvent"]
    whole = greedy(target, prompt, NEW + BLOCK)
    assert tokens == whole[len(prompt):len(prompt) + NEW], (tokens, whole)
    count, vocab = len(backend.rounds), backend.rounds[0][2].shape[1]
    drafts = np.full((count, BLOCK - 1), -1, np.int32)
    logits = np.zeros((count, BLOCK - 1, vocab), np.float32)
    accepted = np.zeros(count, np.int32)
    for i, (context, tokens_of_round, rows) in enumerate(backend.rounds):
        size = len(tokens_of_round)
        drafts[i, :size], logits[i, :size] = tokens_of_round, rows
        right = [a == b for a, b in zip(tokens_of_round, whole[context + 1:])]
        accepted[i] = right.index(False) if False in right else size
        if i + 1 < count:
            assert backend.rounds[i + 1][0] == context + accepted[i] + 1, (i, backend.rounds[i + 1][0])
    return dict(ids=np.array(prompt, np.int32), tokens=np.array(tokens, np.int32),
                context=np.array([r[0] for r in backend.rounds], np.int32), drafts=drafts, logits=logits, accepted=accepted)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=GOLDEN)
    args = parser.parse_args()
    mx.set_default_device(mx.cpu)
    CopySpecIndex.draft_after = lambda *_, **__: None
    for name in NAMES:
        target = load_model(args.out / "target", lazy=False)[0]
        prompt = load_file(args.out / name / "golden.safetensors")["ids"].tolist()
        golden = record(target, load_draft(args.out / name), prompt)
        save_file(golden, args.out / name / "golden_mlx.safetensors")
        print(f"{name}: {len(golden['context'])} rounds, accepted {golden['accepted'].tolist()}")


if __name__ == "__main__":
    main()

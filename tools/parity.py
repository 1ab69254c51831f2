#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares saker with mlx-lm, and with transformers where mlx-lm is wrong, on fresh random checkpoints of the kinds in
make_goldens.py.

    python tools/parity.py --saker build/release/saker [--seeds 100 101 102] [NAME ...]

The truth is the reference in float32. For each kind and seed:
  logprob  mean |saker - truth| of teacher-forced tokens; at most 1e-4, 3e-2 where weights are bf16 or float16,
           and of codes 0.3 of what mlx-lm is off by in their dtype
  greedy   the tokens that follow are the truth's
  chunks   a prefill in steps of 1, 7 and the default gives the same bytes
Ends with 'N passed, N failed'. Needs tools/parity_requirements.txt, and torch for kinds whose reference is transformers:
without it they are named and left out.
"""

import argparse
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

import make_goldens as goldens
import mlx.core as mx
import numpy as np

FLOAT32, NARROW = 1e-4, 3e-2  # Largest accepted mean difference of log-probabilities.
CODES_SHARE = 0.3  # Of what mlx-lm is off by with the same codes.


def saker(program: str, *arguments: object) -> dict:
    done = subprocess.run(
        [program, *map(str, arguments)], capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        raise RuntimeError(f"saker {arguments[0]} exited {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def write_checkpoint(folder: pathlib.Path, config: dict, weights: dict) -> None:
    mx.save_safetensors(str(folder / "model.safetensors"), weights, {"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(config))
    words = {f"t{i}": i for i in range(config["vocab_size"])}  # Never used: all prompts are ids.
    model = {"type": "WordLevel", "vocab": words, "unk_token": "t0"}
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))


def log_probabilities(logits: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Of each token after those before it."""
    logits = logits.astype(np.float64)
    table = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    return table[np.arange(len(ids) - 1), ids[1:]]


def narrow_logits(config: dict, options: dict, weights: dict, ids: np.ndarray) -> np.ndarray:
    """Of mlx-lm with these codes, in their dtype."""
    model = goldens.mlx_model(config)
    goldens.quantize(model, dict(config), options["bits"], options.get("wide", ""))
    model.load_weights(list(model.sanitize(dict(weights)).items()), strict=False)
    model.set_dtype(options["dtype"])
    return np.array(model(mx.array([ids.tolist()])).astype(mx.float32))[0]


def compare(program: str, name: str, seed: int) -> list[tuple[str, bool, str]]:
    reference = goldens.HF if goldens.CASES[name][0] == goldens.HF else goldens.MLX
    gap, config, weights, golden = goldens.make_case(name, seed, reference)
    ids = np.array(golden["ids"])
    truth = log_probabilities(np.array(golden["logits"]), ids)
    options = goldens.CASES[name][2]
    limit = NARROW if "dtype" in options else FLOAT32
    if options.get("bits"):
        narrow = log_probabilities(narrow_logits(config, options, weights, ids), ids)
        limit = CODES_SHARE * float(np.abs(narrow - truth).mean())
    prompt = ",".join(map(str, ids[: goldens.PROMPT]))
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        write_checkpoint(folder, config, weights)
        tokens = ",".join(map(str, ids))
        scored = saker(program, "score", folder, "--tokens", tokens, "--json")["views"]["base"]["logprobs"]
        off = float(np.abs(np.array(scored[1:], dtype=np.float64) - truth).mean())
        common = ("generate", folder, "--tokens", prompt, "--max-tokens", goldens.GREEDY, "--temp", 0,
                  "--ignore-eos", "--logprobs", 0, "--json")
        runs = [saker(program, *common, *step) for step in ((), ("--prefill-step", 1), ("--prefill-step", 7))]
    for run in runs:
        run.pop("stats")
    same = runs[0]["tokens"] == np.array(golden["greedy"]).tolist()
    return [
        ("logprob", off <= limit, f"mean {off:.1e}, at most {limit:.1e}"),
        ("greedy", same or gap <= goldens.MIN_GAP, f"closest step {gap:.3f}"),
        ("chunks", runs[0] == runs[1] == runs[2], "bytes"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="kinds; default: all")
    parser.add_argument("--saker", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101, 102])
    args = parser.parse_args()
    passed = failed = 0
    has_torch = importlib.util.find_spec("torch") is not None
    for name, (reference, _, _) in goldens.CASES.items():
        if args.names and name not in args.names:
            continue
        if reference == goldens.HF and not has_torch:
            print(f"left out: {name}, which needs torch")
            continue
        for seed in args.seeds:
            for check, good, note in compare(args.saker, name, seed):
                passed, failed = passed + good, failed + (not good)
                print(f"{'ok  ' if good else 'FAIL'} {name} seed {seed} {check}: {note}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

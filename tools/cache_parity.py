#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exchanges prompt-cache files with mlx-lm, both ways.

    python tools/cache_parity.py --saker build/release/saker [--seeds 100 101] [NAME ...]

For each kind of model and seed:
  read     mlx-lm's file of a prefix: saker's greedy tokens after it are the truth's
  write    saker's file of the prefix: mlx-lm loads it and its greedy tokens are the truth's
  rows     and the rows are those of mlx-lm's own cache
With the bundled model and caches of 8 and 4 bits:
  read     mlx-lm's file goes on in saker as in mlx-lm
  write    saker's file goes on in mlx-lm as in saker
  rows     and its codes stand for what mlx-lm's stand for
For every class of mlx-lm's cache.py:
  convert  saker rewrites mlx-lm's file; mlx-lm loads that with equal states, and the next update gives equal rows
Ends with 'N passed, N failed'. Needs tools/parity_requirements.txt.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import make_cache_goldens as cache_goldens
import make_goldens as goldens
import mlx.core as mx
import numpy as np
import parity
from mlx_lm.models import cache as kinds
from mlx_lm.utils import load_model

NAMES = ["llama", "llama_bias", "llama_layers", "qwen3", "deepseek_v3", "kimi_linear", "bailing_hybrid", "glm4_moe_lite",
         "gemma3", "gemma4", "gemma4_small", "qwen3_moe", "qwen3_5", "lfm2", "granitemoehybrid", "nemotron_h"]
PREFIX = goldens.PROMPT - 1
ROWS = 1e-4  # Largest accepted mean difference of float32 rows.


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        raise RuntimeError(f"saker {' '.join(map(str, arguments))} exited {done.returncode}: {done.stderr.strip()}")


def greedy(model, cache, token, count):
    tokens = []
    for _ in range(count):
        token = int(mx.argmax(model(mx.array([[token]]), cache=cache)[0, -1]).item())
        tokens.append(token)
    return tokens


def difference(cache, other):
    """Of the newest rows: mlx-lm's rings may hold more than max_size. Of states: of all their numbers."""
    if isinstance(cache, kinds.ArraysCache):
        if [a.shape for a in cache.cache] != [b.shape for b in other.cache]:
            return float("inf")
        return max(float(mx.abs(a - b).mean()) for a, b in zip(cache.cache, other.cache))
    pairs = list(zip(cache.keys_and_values(), other.keys_and_values()))
    needed = min(cache.offset, getattr(cache, "max_size", cache.offset))
    if cache.offset != other.offset or any(b.shape[2] != needed for _, b in pairs):
        return float("inf")
    return max(float(mx.abs(a[:, :, -needed:] - b).mean()) for a, b in pairs)


def exchange(program, name, seed):
    _, config, weights, golden = goldens.make_case(name, seed, goldens.MLX)
    ids, truth = np.array(golden["ids"]).tolist(), np.array(golden["greedy"]).tolist()
    prefix, last = ids[:PREFIX], ids[PREFIX]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        parity.write_checkpoint(folder, config, weights)
        model, _ = load_model(folder)
        cache = kinds.make_prompt_cache(model)
        mx.eval(model(mx.array([prefix]), cache=cache))
        theirs, ours = str(folder / "theirs.safetensors"), str(folder / "ours.safetensors")
        kinds.save_prompt_cache(theirs, cache, {"model": str(folder)})
        run(program, "cache", "save", folder, "--tokens", ",".join(map(str, prefix)), "-o", ours)
        loaded = kinds.load_prompt_cache(ours)
        off = max(difference(a, b) for a, b in zip(cache, loaded))
        read = parity.saker(program, "generate", folder, "--tokens", last, "--max-tokens", len(truth), "--ignore-eos",
                            "--json", "--cache-in", theirs)["tokens"]
        written = greedy(model, loaded, last, len(truth))
    return [("read", read == truth, ""), ("write", written == truth, ""), ("rows", off <= ROWS, f"mean {off:.1e}")]


def quantized(program, bits):
    demo = pathlib.Path(__file__).resolve().parent.parent / "models" / "demo"
    model, _ = load_model(demo)
    model.set_dtype(mx.float32)  # Nearer to saker than mlx-lm's bf16 is.
    text = parity.saker(program, "tokenize", demo, "-t", "Saker is a program that runs language models.", "--json")["tokens"]
    prefix, last = text[:-1], text[-1]
    cache = [kinds.QuantizedKVCache(group_size=64, bits=bits) for _ in model.layers]
    mx.eval(model(mx.array([prefix]), cache=cache))
    with tempfile.TemporaryDirectory() as temporary:
        theirs, ours = f"{temporary}/theirs.safetensors", f"{temporary}/ours.safetensors"
        kinds.save_prompt_cache(theirs, cache, {"model": str(demo)})
        run(program, "cache", "save", demo, "--tokens", ",".join(map(str, prefix)), "--kv-bits", bits, "-o", ours)
        loaded = kinds.load_prompt_cache(ours)
        go_on = ("generate", demo, "--tokens", last, "--max-tokens", 8, "--ignore-eos", "--kv-bits", bits, "--json", "--cache-in")
        read, own = (parity.saker(program, *go_on, file)["tokens"] for file in (theirs, ours))

    def values(layer):
        parts = [mx.dequantize(*part, group_size=64, bits=bits).astype(mx.float32) for part in layer.state[:2]]
        return [part[:, :, : len(prefix)] for part in parts]

    kind = all(type(b) is kinds.QuantizedKVCache and (b.bits, b.group_size, b.offset) == (bits, 64, a.offset)
               for a, b in zip(cache, loaded))
    off = max(float(mx.abs(x - y).mean() / mx.abs(x).mean()) for a, b in zip(cache, loaded) for x, y in zip(values(a), values(b)))
    return [("read", read == greedy(model, cache, last, 8), ""), ("write", kind and own == greedy(model, loaded, last, 8), ""),
            ("rows", off <= 0.05, f"mean difference {off:.1e} of the mean value")]


def same(a, b):
    """Equal values of two states, rows behind the valid ones left out."""
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, mx.array):
        if a.ndim == 4 and b.shape[2] < a.shape[2]:
            a = a[:, :, : b.shape[2]]
        return a.dtype == b.dtype and mx.array_equal(a, b).item()
    return a == b


def next_rows(cache, width):
    batch = cache.offset.shape[0] if isinstance(getattr(cache, "offset", None), mx.array) else 1
    rows = cache.update_and_fetch(*cache_goldens.numbered(50, 1, batch=batch, width=width))
    return [rows[0], rows[1]] if isinstance(rows[0], mx.array) else [list(rows[0]), list(rows[1])]


def convert(program):
    with tempfile.TemporaryDirectory() as temporary:
        theirs, ours = f"{temporary}/theirs.safetensors", f"{temporary}/ours.safetensors"
        caches = cache_goldens.every_kind()
        kinds.save_prompt_cache(theirs, caches, {"note": "x"})
        run(program, "cache", "convert", theirs, ours)
        loaded, metadata = kinds.load_prompt_cache(ours, return_metadata=True)
    results = [("metadata", metadata == {"note": "x"}, "")]
    for cache, again in zip(caches, loaded):
        name = type(cache).__name__
        if isinstance(cache, kinds.ConcatenateKVCache):
            good = isinstance(again, kinds.KVCache) and same(list(cache.state), list(again.state[:2]))
        else:
            good = type(again) is type(cache) and same(cache.state, again.state)
        # mlx-lm cannot update a BatchRotatingKVCache that it loaded: its _lengths is not restored.
        if not isinstance(cache, (kinds.ArraysCache, kinds.CacheList, kinds.BatchRotatingKVCache)):
            width = 32 if isinstance(cache, kinds.QuantizedKVCache) else 4
            good = good and same(next_rows(cache, width), next_rows(again, width))
        results.append((f"convert {name}", good, ""))
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", default=NAMES)
    parser.add_argument("--saker", required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[100, 101])
    args = parser.parse_args()
    passed = failed = 0

    def report(label, results):
        nonlocal passed, failed
        for check, good, note in results:
            passed, failed = passed + good, failed + (not good)
            print(f"{'ok  ' if good else 'FAIL'} {label} {check} {note}".rstrip(), flush=True)

    report("cache", convert(args.saker))
    for bits in (8, 4):
        report(f"{bits} bits", quantized(args.saker, bits))
    for name in args.names:
        for seed in args.seeds:
            report(f"{name} seed {seed}", exchange(args.saker, name, seed))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

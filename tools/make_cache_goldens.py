#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the prompt-cache files of tests/golden/caches with mlx-lm.

    python tools/make_cache_goldens.py [--out tests/golden/caches]

MODEL.safetensors       mlx-lm's own file of the first 7 ids of tests/golden/MODEL, float32 weights
MODEL.classic           the same rows in the older format, as mlx-lm 0.31 wrote it
MODEL.swift             in mlx-swift's dialect of that
kinds.safetensors       one layer of every class of mlx-lm's cache.py, a few rows each
Needs: mlx[cpu]==0.32.4 mlx-lm==0.32.2 numpy
"""
import argparse
import json
import pathlib

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.models import cache as kinds
from mlx_lm.utils import load_model

mx.set_default_device(mx.cpu)
GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "tests" / "golden"
MODELS = ["llama", "deepseek_v3", "gemma3", "gemma4_small"]
PREFIX = 7


def model_cache(name):
    model, _ = load_model(GOLDEN / name)
    model.set_dtype(mx.float32)
    ids = mx.load(str(GOLDEN / name / "golden.safetensors"))["ids"][:PREFIX]
    cache = kinds.make_prompt_cache(model)
    mx.eval(model(ids[None], cache=cache))
    return cache


def rows(cache):
    """Keys and values as the older formats hold them: valid rows only."""
    return list(cache.keys_and_values())


def classic(caches, strings):
    """Tensors and metadata of the older format; `strings` gives a layer's meta."""
    arrays = dict(tree_flatten([rows(c) for c in caches]))
    metadata = [[strings(c) for c in caches], {"model": "golden"}, [type(c).__name__ for c in caches]]
    return arrays, dict(tree_flatten(metadata))


def mlx_lm_strings(c):
    if isinstance(c, kinds.RotatingKVCache):
        return [str(x) for x in (c.keep, c.max_size, c.offset, c._idx)]
    return ""


def swift_strings(c):
    if isinstance(c, kinds.RotatingKVCache):
        return [str(x) for x in (c.keep, c.max_size, c.step, c.offset, c._idx)] + ["model"]
    return [""]


def numbered(first, count, batch=1, heads=2, width=4):
    """Keys whose elements are the row's number, and values that are its negative, plus the head's number / 8."""
    row = mx.arange(first, first + count, dtype=mx.float32)[None, None, :, None]
    head = mx.arange(heads, dtype=mx.float32)[None, :, None, None] / 8
    keys = mx.broadcast_to(row + head, (batch, heads, count, width))
    return keys, -keys


def every_kind():
    kv, ring, concat, chunked = kinds.KVCache(), kinds.RotatingKVCache(8, 4), kinds.ConcatenateKVCache(), kinds.ChunkedKVCache(4)
    for c in (kv, concat):
        c.update_and_fetch(*numbered(0, 5))
    for i in range(11):
        ring.update_and_fetch(*numbered(i, 1))
    chunked.update_and_fetch(*numbered(0, 6))
    chunked.maybe_trim_front()
    long_ring = kinds.RotatingKVCache(8, 4)
    for start, count in ((0, 9), (9, 2)):
        long_ring.update_and_fetch(*numbered(start, count))
    quantized = kinds.QuantizedKVCache(group_size=32, bits=8)
    quantized.update_and_fetch(*numbered(0, 3, width=32))
    arrays = kinds.ArraysCache(3, left_padding=[1, 0])
    arrays[1] = mx.arange(6, dtype=mx.float32).reshape(2, 3)
    batch = kinds.BatchKVCache([1, 3, 0])
    batch.update_and_fetch(*numbered(0, 4, batch=3))
    batch_ring = kinds.BatchRotatingKVCache(2, [0])
    for start, count in ((0, 3), (3, 1)):
        batch_ring.update_and_fetch(*numbered(start, count))
    inner = kinds.KVCache()
    inner.update_and_fetch(*numbered(0, 3))
    ring5 = kinds.RotatingKVCache(8, 4)
    ring5.update_and_fetch(*numbered(0, 5))
    nested = kinds.CacheList(inner, kinds.CacheList(ring5, kinds.KVCache()))
    return [kv, ring, long_ring, concat, chunked, quantized, arrays, batch, batch_ring, nested, kinds.KVCache(),
            kinds.RotatingKVCache(16)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=GOLDEN / "caches")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        caches = model_cache(name)
        metadata = {"model": "golden", "tokenizer_config": json.dumps({})}
        kinds.save_prompt_cache(str(out / f"{name}.safetensors"), caches, metadata)
        for dialect, strings in (("classic", mlx_lm_strings), ("swift", swift_strings)):
            file = out / f"{name}.{dialect}.safetensors"
            mx.save_safetensors(str(file), *classic(caches, strings))
            file.rename(out / f"{name}.{dialect}")
    kinds.save_prompt_cache(str(out / "kinds.safetensors"), every_kind(), {"note": "every class", "a.b": "dotted"})


if __name__ == "__main__":
    main()

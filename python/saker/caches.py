# SPDX-License-Identifier: Apache-2.0
"""mlx-lm's cache classes over arrays of ``mlx.core``, for programs that compute attention themselves.

    cache = saker.caches.make_prompt_cache(4)            # a KVCache for each of 4 layers; also: a model of mlx-lm's
    keys, values = cache[0].update_and_fetch(keys, values)
    saker.caches.save_prompt_cache("prompt.safetensors", cache)
    cache = saker.caches.load_prompt_cache("prompt.safetensors")

Classes, members and files are those of mlx-lm 0.32.2, so its models run on these caches: ``model(tokens, cache=cache)``.
docs/caches.md of the source describes each class and the differences. Errors are those of ``saker.errors``.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Literal, overload

import mlx.core  # noqa: F401  Its type of arrays is registered before ours are used.

from saker import _caches
from saker._caches import (
    ArraysCache,
    BatchKVCache,
    BatchRotatingKVCache,
    Cache,
    CacheList,
    ChunkedKVCache,
    KVCache,
    QuantizedKVCache,
    QuantizedRotatingKVCache,
    RotatingKVCache,
)
from saker.errors import InvalidArgumentError, UnsupportedError

if not _caches.shares_arrays():
    raise ImportError(f"mlx {version('mlx')} does not share its arrays: saker was built for another one")

__all__ = [
    "ArraysCache",
    "BatchKVCache",
    "BatchRotatingKVCache",
    "Cache",
    "CacheList",
    "ChunkedKVCache",
    "KVCache",
    "MambaCache",
    "QuantizedKVCache",
    "QuantizedRotatingKVCache",
    "RotatingKVCache",
    "can_trim_prompt_cache",
    "load_prompt_cache",
    "make_prompt_cache",
    "save_prompt_cache",
    "trim_prompt_cache",
]

Path = str | os.PathLike[str]
OWN_CLASSES_ONLY = {"mamba", "falcon_mamba"}
"""Models of mlx-lm that keep their state in mlx-lm's own class alone, and ignore others."""
MAX_ROWS = 2**31 - 1
"""Rows that a cache can number."""


def MambaCache(left_padding: Sequence[int] | None = None) -> ArraysCache:  # noqa: N802
    """An ArraysCache of two slots, convolution and recurrence, by the name of older versions of mlx-lm."""
    return ArraysCache(2, left_padding)


def _taken(cache: Any) -> Cache:
    """A cache of mlx-lm's as one of ours, with the same state."""
    return cache if isinstance(cache, Cache) else _caches.from_state(type(cache).__name__, cache.state)


def make_prompt_cache(model: Any, max_kv_size: int | None = None) -> list[Cache]:
    """One empty cache per layer of ``model``: a model of mlx-lm's, or a number of layers.

    A model with ``make_cache`` decides for itself. Other layers get a KVCache, with ``max_kv_size`` a RotatingKVCache that
    keeps the first 4 rows.
    """
    if getattr(model, "model_type", None) in OWN_CLASSES_ONLY:
        raise UnsupportedError(f"a model of type {model.model_type!r}, which keeps its state in mlx-lm's own classes alone")
    if not isinstance(model, int) and hasattr(model, "make_cache"):
        return [_taken(cache) for cache in model.make_cache()]
    layers = model if isinstance(model, int) else len(model.layers)
    if layers < 1:
        raise InvalidArgumentError(f"{layers} layers, expected 1 or more")
    if max_kv_size is not None and not 1 <= max_kv_size <= MAX_ROWS:
        raise InvalidArgumentError(f"max_kv_size is {max_kv_size}, expected 1 to {MAX_ROWS}")
    return _caches.make_prompt_cache(layers, max_kv_size)


def save_prompt_cache(file_name: Path, cache: Iterable[Cache], metadata: Mapping[str, str] | None = None) -> None:
    """Writes a ``.safetensors`` file that mlx-lm reads, too. It appears whole or not at all, readable for its owner alone."""
    _caches.save_prompt_cache(os.path.expanduser(os.fspath(file_name)), list(cache), dict(metadata or {}))


@overload
def load_prompt_cache(file_name: Path, return_metadata: Literal[False] = False) -> list[Cache]: ...
@overload
def load_prompt_cache(file_name: Path, return_metadata: Literal[True]) -> tuple[list[Cache], dict[str, str]]: ...
def load_prompt_cache(
    file_name: Path, return_metadata: bool = False
) -> list[Cache] | tuple[list[Cache], dict[str, str]]:
    """Reads a prompt cache of ours, of mlx-lm (any version), mlx-swift or mlxrs, and checks all of it first.

    Errors name the file and the layer: ``CorruptDataError`` for a broken file, ``UnsupportedError`` for an unknown class.
    """
    cache, metadata = _caches.load_prompt_cache(os.path.expanduser(os.fspath(file_name)))
    return (cache, metadata) if return_metadata else cache


def can_trim_prompt_cache(cache: Iterable[Cache]) -> bool:
    """True if all layers can drop rows at their end."""
    return _caches.can_trim_prompt_cache(list(cache))


def trim_prompt_cache(cache: Iterable[Cache], num_tokens: int) -> int:
    """Drops the last rows of all layers, or none if a layer cannot, and returns how many."""
    return _caches.trim_prompt_cache(list(cache), num_tokens)

# SPDX-License-Identifier: Apache-2.0
"""Models fetched from the Hugging Face hub into the cache that ``huggingface_hub`` keeps."""

import os
from collections.abc import Callable, Sequence

from saker import _native
from saker.errors import NotFoundError

Progress = Callable[[int, int], object]
"""Bytes that are there, and bytes of all files."""


def pull(
    name: str, *, include: Sequence[str] = (), parallel: int = 8, on_progress: Progress | None = None
) -> _native.PullReport:
    """Fetches what a model needs, as ``saker pull`` does: ``org/name``, ``org/name@revision``, ``org/name:Q4_K_M`` for one
    GGUF file, or an address at huggingface.co.

    ``include``: patterns (``*``, ``?``, ``[ab]``) of further files. ``parallel``: files at a time. ``on_progress(done,
    total)`` is called a few times a second, on another thread; what it raises ends the pull. Ctrl-C does too; the next
    pull goes on with what has come. The environment is that of ``saker pull`` (``HF_HOME``, ``HF_ENDPOINT``,
    ``HF_TOKEN`` ...); don't change it meanwhile.
    """
    return _native.pull(name, list(include), parallel, on_progress)


def fetch_missing(path: str | os.PathLike[str]) -> None:
    """Pulls what a path or name stands for, where it is neither there nor in the cache."""
    name = os.fspath(path)
    if _native.is_missing(name):
        pull(name)


def refuse_missing(path: str | os.PathLike[str]) -> None:
    """Raises ``NotFoundError``, saying how to get it, for what ``fetch_missing`` would pull."""
    name = os.fspath(path)
    if _native.is_missing(name):
        raise NotFoundError(
            f"{name!r} is neither a path nor in the Hugging Face cache: saker.pull({name!r}) fetches it, "
            "and so does saker.load(..., pull=True)"
        )

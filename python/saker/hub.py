# SPDX-License-Identifier: Apache-2.0
"""Models fetched from the Hugging Face hub into the cache that ``huggingface_hub`` keeps."""

import os
from collections.abc import Callable, Sequence

from saker import _native

Progress = Callable[[int, int], object]
"""Bytes that are there, and bytes of all files."""


def pull(
    name: str, *, include: Sequence[str] = (), parallel: int = 8, on_progress: Progress | None = None
) -> _native.PullReport:
    """Fetches what a model needs, as ``saker pull`` does: ``org/name``, or ``org/name@revision``.

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

# SPDX-License-Identifier: Apache-2.0
"""Keywords of ``embed``."""

from typing import Any, TypedDict

EMBED_DEFAULTS: dict[str, Any] = {
    "pooling": None, "normalize": None, "dimensions": 0, "prompt_name": "", "prompt": None, "truncate": False,
}


class EmbedOptions(TypedDict, total=False):
    """Keywords of ``embed``; without them the vectors are those that the model's files of sentence-transformers describe."""

    pooling: str | None
    """``last``, ``mean`` or ``cls``: the last or first token's row, or the mean of all."""
    normalize: bool | None
    """Unit length."""
    dimensions: int
    """Keeps this many first elements; 0: all."""
    prompt_name: str
    """A prompt of the model that begins each text, such as ``query``."""
    prompt: str | None
    """The prompt itself, instead of a name."""
    truncate: bool
    """Cuts texts that are longer than the model's context, which are an error otherwise."""

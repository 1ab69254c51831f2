# SPDX-License-Identifier: Apache-2.0
"""What a model or file holds, and whether it can run, as ``saker inspect`` tells it."""

import json
import os
from typing import Any, cast

from saker import _native, bundled, hub


def inspect(path: str | os.PathLike[str] = "", *, kv_bits: int | None = None) -> dict[str, Any]:
    """What a model, an adapter or a file of tensors holds, from its headers: no weight is read.

    A dict with the members of ``saker inspect --json``: ``kind``, ``parameters``, ``file_bytes``, ``dtypes``, ``tensors``,
    ``warnings``; of a model also ``runnable``, ``reason`` where it is not, and ``model`` with its type, sizes, quantization and
    sampling. ``kv_bits`` (32, 16, 8 or 4) adds ``caches``, what each layer's cache takes.
    """
    name = os.path.expanduser(os.fspath(path)) or bundled.model()
    hub.refuse_missing(name)
    return cast("dict[str, Any]", json.loads(_native.inspect(name, kv_bits)))

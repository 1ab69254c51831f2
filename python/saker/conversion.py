# SPDX-License-Identifier: Apache-2.0
"""Models quantized, dequantized or in another dtype, as ``saker convert`` writes them."""

import os
from collections.abc import Callable, Sequence
from typing import Literal

from saker import _native

Path = str | os.PathLike[str]
Progress = Callable[[int, int], object]
"""Elements of the weights that are written, and all of them."""


def convert(
    source: Path,
    target: Path,
    *,
    bits: int | None = None,
    group_size: int | None = None,
    mode: Literal["affine", "mxfp4", "nvfp4", "mxfp8"] | None = None,
    recipe: Literal["mixed_2_6", "mixed_3_4", "mixed_3_6", "mixed_4_6"] | None = None,
    rules: Sequence[str] = (),
    dtype: Literal["float32", "float16", "bfloat16"] | None = None,
    dequantize: bool = False,
    on_progress: Progress | None = None,
) -> _native.ConvertReport:
    """Writes the model ``source`` (a folder, a GGUF file, or a repo id in the hub cache) to the new folder ``target``.

    Any of ``bits`` (2, 3, 4, 5, 6 or 8), ``group_size`` (32, 64 or 128), ``mode``, ``recipe`` and ``rules``
    (``PATTERN=BITS[:GROUP[:MODE]]`` or ``PATTERN=float``, the first match counts) quantizes, as ``mlx_lm.convert`` does and
    with the same bits. ``dtype`` is that of what is not quantized. ``dequantize`` writes a quantized model as floats.

    ``on_progress(done, total)`` is called from other threads; what it raises ends the conversion. The folder appears whole
    or not at all.
    """
    return _native.convert(
        os.path.expanduser(os.fspath(source)),
        os.path.expanduser(os.fspath(target)),
        bits or 0,
        group_size or 0,
        mode or "",
        recipe or "",
        list(rules),
        dtype,
        dequantize,
        on_progress,
    )

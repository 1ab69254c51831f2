#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/npz: the same arrays as NumPy and MLX write them, and as safetensors.

Needs: mlx[cpu]==0.32.4 numpy
"""
import pathlib

import mlx.core as mx
import numpy as np

OUT = pathlib.Path(__file__).parent.parent / "tests/golden/npz"


def main():
    OUT.mkdir(exist_ok=True)
    rng = np.random.default_rng(0)
    square = rng.standard_normal((5, 3)).astype(np.float32)
    arrays = {
        "model.layers.0.self_attn.q_proj.lora_a": square,
        "cube": rng.standard_normal((2, 3, 4)).astype(np.float16),
        "zeros": np.zeros((40, 8), np.float32),
        "line": np.arange(7, dtype=np.int32),
        "one": np.array(2.5, np.float32),
        "none": np.zeros((0, 3), np.float32),
    }
    np.savez(OUT / "numpy.npz", **arrays)
    np.savez_compressed(OUT / "compressed.npz", **arrays)
    np.savez(OUT / "fortran.npz", **{name: array if array.ndim == 0 else np.asfortranarray(array)
                                  for name, array in arrays.items()})
    ours = {name: mx.array(array) for name, array in arrays.items() if array.size}
    ours["halves"] = mx.array(square).astype(mx.bfloat16)
    mx.savez(str(OUT / "mlx.npz"), **ours)
    ours["none"] = mx.array(arrays["none"])
    mx.save_safetensors(str(OUT / "arrays.safetensors"), ours)
    np.savez(OUT / "pickled.npz", objects=np.array([{"a": 1}], dtype=object))
    np.savez(OUT / "records.npz", records=np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]))
    np.savez(OUT / "big_endian.npz", numbers=square.astype(">f4"))
    np.savez(OUT / "texts.npz", texts=np.array(["a", "b"]))


if __name__ == "__main__":
    main()

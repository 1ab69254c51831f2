#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/gguf/encoded.safetensors: rows and their blocks of each type of GGUF that we write, by ggml.

    python tools/make_gguf_encode_goldens.py --library libggml-base.so [--out tests/golden/gguf]

rows           float32 [rows, columns]
importance     float32 [columns]
TYPE.plain     the rows' blocks by ggml_quantize_chunk, uint8 [rows, bytes of a row]
TYPE.weighted  as TYPE.plain with the importance; for types that use it
Needs: numpy safetensors, and libggml-base of llama.cpp built for plain x86-64 (GGML_NATIVE=OFF): with fused
multiplications its bits are others.
"""
import argparse
import ctypes
import pathlib

import numpy as np
from safetensors.numpy import save_file

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "tests" / "golden"
# Name: number of the type, values and bytes of a block, and if its search uses an importance.
TYPES = {
    "F16": (1, 1, 2, False),
    "BF16": (30, 1, 2, False),
    "Q8_0": (8, 32, 34, False),
    "Q4_0": (2, 32, 18, True),
    "Q4_1": (3, 32, 20, True),
    "Q5_0": (6, 32, 22, True),
    "Q5_1": (7, 32, 24, True),
    "Q2_K": (10, 256, 84, True),
    "Q3_K": (11, 256, 110, True),
    "Q4_K": (12, 256, 144, True),
    "Q5_K": (13, 256, 176, True),
    "Q6_K": (14, 256, 210, True),
    "IQ4_NL": (20, 32, 18, True),
    "IQ4_XS": (23, 256, 136, True),
    "MXFP4": (39, 32, 17, False),
    "TQ1_0": (34, 256, 54, False),
    "TQ2_0": (35, 256, 66, False),
}
COLUMNS = 512


def make_rows(random):
    normal = random.normal(0, 0.02, (7, COLUMNS))
    outliers = np.where(random.random(COLUMNS) < 0.02, 50, 1)
    groups = 10.0 ** random.uniform(-12, 4, COLUMNS // 16).repeat(16)
    signs = np.tile([1.0, -1.0], COLUMNS // 2)
    rows = [
        normal[0],
        normal[1] * outliers,
        np.abs(normal[2]) + 0.1,
        normal[3] / 1000 - 5,  # Ends of a range that is small beside its distance from 0.
        normal[4] * groups,
        np.where(random.random(COLUMNS) < 0.9, 0, normal[5]),
        signs * np.concatenate([np.zeros(64), np.full(192, 60000), np.linspace(0, 1, 256)]),
        normal[6] * 1e-36,  # Quotients overflow.
    ]
    return np.stack(rows).astype(np.float32)


def encode(library, kind, rows, importance):
    number, block, size, _ = TYPES[kind]
    blocks = np.zeros((len(rows), COLUMNS // block * size), np.uint8)
    weights = None if importance is None else importance.ctypes.data
    library.ggml_quantize_chunk(number, rows.ctypes.data, blocks.ctypes.data, 0, len(rows), COLUMNS, weights)
    return blocks


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, default=GOLDEN / "gguf")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    library = ctypes.CDLL(str(arguments.library))
    pointer, count = ctypes.c_void_p, ctypes.c_int64
    library.ggml_quantize_chunk.argtypes = [ctypes.c_int, pointer, pointer, count, count, count, pointer]
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    random = np.random.default_rng(11)
    rows = make_rows(random)
    importance = np.exp(random.normal(0, 3, COLUMNS)).astype(np.float32)
    importance[random.random(COLUMNS) < 0.1] = 0
    tensors = {"rows": rows, "importance": importance}
    for kind, (_, _, _, weighted) in TYPES.items():
        tensors[f"{kind}.plain"] = encode(library, kind, rows, None)
        if weighted:
            tensors[f"{kind}.weighted"] = encode(library, kind, rows, importance)
    save_file(tensors, arguments.out / "encoded.safetensors")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/gguf/blocks.safetensors: blocks of each type of GGUF and what they hold; a split model; and seeds for fuzzing.

    python tools/make_gguf_goldens.py [--out tests/golden/gguf] [--seeds tests/fuzz/corpus/gguf]

TYPE.blocks  random bytes with sound scales, uint8 [blocks, bytes of a block]
TYPE.floats  their weights by ggml's own Python package, float32
whole.gguf, split-0000N-of-00004.gguf  the same tensors in one file and in four, the first with keys only
Needs: gguf==0.19.0 numpy safetensors
"""
import argparse
import pathlib

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFWriter
from gguf.quants import dequantize
from safetensors.numpy import save_file

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "tests" / "golden"
# Where blocks have float16 scales.
SCALES = {
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
}
# Types that become other blocks or formats, made after the others.
OTHER_SCALES = {
    "Q2_K": [80, 82],
    "Q3_K": [108],
    "IQ4_NL": [0],
    "IQ4_XS": [0],
    "IQ3_XXS": [0],
    "IQ3_S": [0],
    "IQ2_XXS": [0],
    "IQ2_XS": [0],
    "IQ2_S": [0],
    "IQ1_S": [0],
    "IQ1_M": [],
    "TQ1_0": [52],
    "TQ2_0": [64],
    "MXFP4": [],
    "NVFP4": [],
}
BLOCKS = 6


def random_blocks(name, count, random):
    kind = GGMLQuantizationType[name]
    _, size = GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (count, size), dtype=np.uint8)
    if name == "IQ1_M":  # A nibble of the scale in each of its last four words.
        scale = random.normal(0, 0.02, (count, 1)).astype(np.float16).view(np.uint16)
        words = blocks[:, 48:].view(np.uint16)
        words[:] = words & 0x0FFF | (scale >> np.array([0, 4, 8, 12], np.uint16) & 15) << 12
    elif name == "MXFP4":
        blocks[:, 0] = random.integers(0, 140, count)
    elif name == "NVFP4":
        blocks[:, :4] = random.integers(0, 127, (count, 4))
    for place in {**SCALES, **OTHER_SCALES}[name]:
        scales = random.normal(0, 0.02, (count, 1)).astype(np.float16)
        blocks[:, place : place + 2] = scales.view(np.uint8)
    return kind, blocks


def write_seed(path, arch, matrix, random, **split):
    """A model of one layer, with a vocabulary of the kind that the architecture has."""
    writer = GGUFWriter(path, arch, **split)
    writer.add_block_count(1)
    writer.add_embedding_length(256)
    writer.add_feed_forward_length(256)
    writer.add_context_length(64)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)
    writer.add_sliding_window(16)
    pieces = arch != "qwen2"
    writer.add_tokenizer_model("llama" if pieces else "gpt2")
    writer.add_token_list(["<unk>", "<s>", "<0x0A>", "\u2581", "a", "b", "ab", "\u2581ab"])
    writer.add_token_types([2, 3, 6, 1, 1, 1, 1, 4])
    if pieces:
        writer.add_token_scores([0.0, 0.0, 0.0, -1.0, -2.0, -3.0, -4.0, -5.0])
    else:
        writer.add_tokenizer_pre("qwen2")
        writer.add_token_merges(["a b", "\u2581 ab"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(1)
    writer.add_chat_template("{{ messages[0].content }}")
    kind, blocks = random_blocks(matrix, 256 * 256 // GGML_QUANT_SIZES[GGMLQuantizationType[matrix]][0] // 32, random)
    writer.add_tensor("token_embd.weight", np.zeros((8, 256), np.float16))
    writer.add_tensor("blk.0.attn_norm.weight", np.ones(256, np.float32))
    writer.add_tensor("blk.0.attn_q.weight", blocks.reshape(8, -1), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=pathlib.Path, default=GOLDEN / "gguf")
    parser.add_argument("--seeds", type=pathlib.Path, default=GOLDEN.parent / "fuzz" / "corpus" / "gguf")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    arguments.seeds.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)
    tensors = {}
    for name in SCALES:
        kind, blocks = random_blocks(name, BLOCKS, random)
        tensors[f"{name}.blocks"] = blocks
        tensors[f"{name}.floats"] = dequantize(blocks, kind).astype(np.float32)
    others = np.random.default_rng(8)
    for name in OTHER_SCALES:
        kind, blocks = random_blocks(name, BLOCKS, others)
        tensors[f"{name}.blocks"] = blocks
        tensors[f"{name}.floats"] = dequantize(blocks, kind).astype(np.float32)
    save_file(tensors, arguments.out / "blocks.safetensors")
    state = random.bit_generator.state
    write_seed(arguments.out / "whole.gguf", "llama", "Q4_0", random)
    random.bit_generator.state = state
    write_seed(arguments.out / "split.gguf", "llama", "Q4_0", random, split_max_tensors=1, small_first_shard=True)
    parts = sorted(arguments.out.glob("split-*.gguf"))
    (arguments.seeds / "split.gguf").write_bytes(b"".join(part.read_bytes() for part in parts))
    random.bit_generator.state = state
    for arch, matrix in [("llama", "Q4_0"), ("qwen2", "Q5_K"), ("gemma3", "Q6_K")]:
        write_seed(arguments.seeds / f"{arch}.gguf", arch, matrix, random)
    for matrix in ("IQ1_S", "IQ3_S", "IQ4_XS", "NVFP4"):
        write_seed(arguments.seeds / f"{matrix.lower()}.gguf", "llama", matrix, random)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write a GGUF file of a published mixture's shape, with fewer layers and random weights: saker and peers are timed on it.

    bench/mixture_files.py OUT.gguf [--shape qwen3moe|gpt-oss|qwen35moe|lfm2moe] [--layers 8] [--type Q4_0]

Shapes are those of Qwen3-30B-A3B, gpt-oss-20b, Qwen3.5-35B-A3B and LFM2-8B-A1B. Some experts are made and repeated, so that
writing takes seconds; the router is random, so that rows choose different ones. Types that the gguf package does not quantize
(Q4_K, Q6_K) get random codes with small scales, which is good for timing only. Experts of gpt-oss have MXFP4 as published.
Needs gguf and numpy.
"""
import argparse

import gguf
import numpy as np

# By type: where a block has its float16 scales.
SCALES = {"Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "Q2_K": (80, 82), "Q3_K": (108,), "IQ4_XS": (0,)}
POOL = 512  # Rows that are made; larger matrices repeat them.


class File:
    """A file that is written, and what its tensors are made of."""

    def __init__(self, path: str, architecture: str, kind: str, layers: int):
        self.out = gguf.GGUFWriter(path, architecture)
        self.kind = kind
        self.layers = layers
        self.random = np.random.default_rng(0)
        self.pools: dict[tuple[str, int], np.ndarray] = {}
        self.out.add_block_count(layers)
        self.out.add_tokenizer_model("none")

    def pool(self, kind: str, columns: int) -> np.ndarray:
        """Rows of codes."""
        if (kind, columns) not in self.pools:
            self.pools[kind, columns] = self.codes(gguf.GGMLQuantizationType[kind], kind, columns)
        return self.pools[kind, columns]

    def codes(self, type_: gguf.GGMLQuantizationType, kind: str, columns: int) -> np.ndarray:
        block, size = gguf.GGML_QUANT_SIZES[type_]
        if kind == "MXFP4":  # A scale of 2^-6, then 4 bits a weight.
            data = self.random.integers(0, 256, (POOL * columns // block, size), dtype=np.uint8)
            data[:, 0] = 121
            return data.reshape(POOL, columns // block * size)
        if kind not in SCALES:
            return gguf.quants.quantize(self.random.standard_normal((POOL, columns), dtype=np.float32) * 0.02, type_)
        data = self.random.integers(0, 256, (POOL * columns // block, size), dtype=np.uint8)
        for at in SCALES[kind]:
            data[:, at : at + 2] = np.frombuffer(np.float16(2e-4).tobytes(), np.uint8)
        return data.reshape(POOL, columns // block * size)

    def matrix(self, name: str, rows: int, columns: int, experts: int = 0, kind: str = "") -> None:
        kind = kind or self.kind
        pool = self.pool(kind, columns)
        data = np.resize(pool, (max(1, experts) * rows, pool.shape[1]))
        if experts:
            data = data.reshape(experts, rows, -1)
        self.out.add_tensor(name, data, raw_dtype=gguf.GGMLQuantizationType[kind])

    def floats(self, name: str, *shape: int, scale: float = 0.1) -> None:
        self.out.add_tensor(name, self.random.standard_normal(shape, dtype=np.float32) * np.float32(scale))

    def ones(self, *sizes: tuple[str, int]) -> None:
        for name, size in sizes:
            self.out.add_tensor(f"{name}.weight", np.ones(size, np.float32))

    def attention(self, block: str, hidden: int, heads: int, kv_heads: int, head_dim: int, biases: bool = False, gate: bool = False) -> None:
        out = heads * head_dim
        for name, rows, columns in (("q", out * (2 if gate else 1), hidden), ("k", kv_heads * head_dim, hidden), ("v", kv_heads * head_dim, hidden),
                                    ("output", hidden, out)):
            self.matrix(f"{block}attn_{name}.weight", rows, columns)
            if biases:
                self.floats(f"{block}attn_{name}.bias", rows)

    def experts(self, block: str, hidden: int, width: int, count: int, kind: str = "", biases: bool = False) -> None:
        self.floats(f"{block}ffn_gate_inp.weight", count, hidden)
        for name, rows, columns in (("gate", width, hidden), ("up", width, hidden), ("down", hidden, width)):
            self.matrix(f"{block}ffn_{name}_exps.weight", rows, columns, count, kind)
            if biases:
                self.floats(f"{block}ffn_{name}_exps.bias", count, rows)
        if biases:
            self.floats(f"{block}ffn_gate_inp.bias", count)

    def mlp(self, block: str, hidden: int, width: int, suffix: str = "") -> None:
        for name, rows, columns in (("gate", width, hidden), ("up", width, hidden), ("down", hidden, width)):
            self.matrix(f"{block}ffn_{name}{suffix}.weight", rows, columns)

    def sizes(self, hidden: int, width: int, heads: int, kv_heads, head_dim: int, vocab: int, theta: float, eps: float) -> None:
        out = self.out
        out.add_context_length(32768)
        out.add_embedding_length(hidden)
        out.add_feed_forward_length(width)
        out.add_head_count(heads)
        out.add_head_count_kv(kv_heads)
        out.add_key_length(head_dim)
        out.add_value_length(head_dim)
        out.add_rope_freq_base(theta)
        out.add_layer_norm_rms_eps(eps)
        out.add_vocab_size(vocab)

    def mixture(self, experts: int, chosen: int, width: int) -> None:
        self.out.add_expert_count(experts)
        self.out.add_expert_used_count(chosen)
        self.out.add_expert_feed_forward_length(width)

    def write(self) -> None:
        self.out.write_header_to_file()
        self.out.write_kv_data_to_file()
        self.out.write_tensors_to_file()
        self.out.close()


def qwen3moe(file: File) -> None:
    file.sizes(2048, 6144, 32, 4, 128, 151936, 1e6, 1e-6)
    file.mixture(128, 8, 768)
    file.matrix("token_embd.weight", 151936, 2048)
    file.matrix("output.weight", 151936, 2048)
    file.ones(("output_norm", 2048))
    for layer in range(file.layers):
        block = f"blk.{layer}."
        file.ones((block + "attn_norm", 2048), (block + "ffn_norm", 2048), (block + "attn_q_norm", 128), (block + "attn_k_norm", 128))
        file.attention(block, 2048, 32, 4, 128)
        file.experts(block, 2048, 768, 128)


def gpt_oss(file: File) -> None:
    file.sizes(2880, 2880, 64, 8, 64, 201088, 150000.0, 1e-5)
    file.mixture(32, 4, 2880)
    file.out.add_sliding_window(128)
    file.out.add_rope_scaling_type(gguf.RopeScalingType.YARN)
    file.out.add_rope_scaling_factor(32.0)
    file.out.add_rope_scaling_orig_ctx_len(4096)
    file.matrix("token_embd.weight", 201088, 2880, kind="Q8_0")
    file.matrix("output.weight", 201088, 2880, kind="Q8_0")
    file.ones(("output_norm", 2880))
    file.kind = "Q8_0"  # 2880 is no multiple of 256.
    for layer in range(file.layers):
        block = f"blk.{layer}."
        file.ones((block + "attn_norm", 2880), (block + "post_attention_norm", 2880))
        file.attention(block, 2880, 64, 8, 64, biases=True)
        file.floats(block + "attn_sinks.weight", 64, scale=1.0)
        file.experts(block, 2880, 2880, 32, "MXFP4", biases=True)


def qwen35moe(file: File) -> None:
    hidden, key_heads, value_heads, size = 2048, 16, 32, 128
    inner = value_heads * size
    file.sizes(hidden, 512, 16, 2, 256, 248320, 1e7, 1e-6)
    file.mixture(256, 8, 512)
    out = file.out
    out.add_expert_shared_feed_forward_length(512)
    out.add_rope_dimension_count(64)
    out.add_rope_dimension_sections([11, 11, 10, 0])
    out.add_ssm_conv_kernel(4)
    out.add_ssm_inner_size(inner)
    out.add_ssm_state_size(size)
    out.add_ssm_time_step_rank(value_heads)
    out.add_ssm_group_count(key_heads)
    out.add_full_attention_interval(4)
    file.matrix("token_embd.weight", 248320, hidden)
    file.matrix("output.weight", 248320, hidden)
    file.ones(("output_norm", hidden))
    for layer in range(file.layers):
        block = f"blk.{layer}."
        file.ones((block + "attn_norm", hidden), (block + "post_attention_norm", hidden))
        if layer % 4 == 3:
            file.attention(block, hidden, 16, 2, 256, gate=True)
            file.ones((block + "attn_q_norm", 256), (block + "attn_k_norm", 256))
        else:
            channels = 2 * key_heads * size + inner
            file.matrix(block + "attn_qkv.weight", channels, hidden)
            file.matrix(block + "attn_gate.weight", inner, hidden)
            file.floats(block + "ssm_conv1d.weight", channels, 4)
            file.floats(block + "ssm_dt.bias", value_heads)
            out.add_tensor(block + "ssm_a", -np.linspace(0.5, 4, value_heads, dtype=np.float32))
            file.matrix(block + "ssm_beta.weight", value_heads, hidden)
            file.matrix(block + "ssm_alpha.weight", value_heads, hidden)
            file.ones((block + "ssm_norm", size))
            file.matrix(block + "ssm_out.weight", hidden, inner)
        file.experts(block, hidden, 512, 256)
        file.floats(block + "ffn_gate_inp_shexp.weight", hidden)
        file.mlp(block, hidden, 512, "_shexp")


def lfm2moe(file: File) -> None:
    hidden, dense = 2048, 2
    attends = [layer in (2, 6, 10, 14, 18, 21) for layer in range(file.layers)]
    file.sizes(hidden, 7168, 32, [8 if has else 0 for has in attends], 64, 65536, 1e6, 1e-5)
    file.mixture(32, 4, 1792)
    file.out.add_leading_dense_block_count(dense)
    file.out.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    file.out.add_shortconv_l_cache(3)
    file.matrix("token_embd.weight", 65536, hidden)
    file.ones(("token_embd_norm", hidden))
    for layer, has_attention in enumerate(attends):
        block = f"blk.{layer}."
        file.ones((block + "attn_norm", hidden), (block + "ffn_norm", hidden))
        if has_attention:
            file.attention(block, hidden, 32, 8, 64)
            file.ones((block + "attn_q_norm", 64), (block + "attn_k_norm", 64))
        else:
            file.floats(block + "shortconv.conv.weight", hidden, 3)
            file.matrix(block + "shortconv.in_proj.weight", 3 * hidden, hidden)
            file.matrix(block + "shortconv.out_proj.weight", hidden, hidden)
        if layer < dense:
            file.mlp(block, hidden, 7168)
        else:
            file.experts(block, hidden, 1792, 32)
            file.floats(block + "exp_probs_b.bias", 32)


SHAPES = {"qwen3moe": qwen3moe, "gpt-oss": gpt_oss, "qwen35moe": qwen35moe, "lfm2moe": lfm2moe}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--shape", choices=SHAPES, default="qwen3moe")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--type", default="Q4_0", help="of all matrices but gpt-oss's")
    args = parser.parse_args()
    file = File(args.out, args.shape, args.type, args.layers)
    SHAPES[args.shape](file)
    file.write()


if __name__ == "__main__":
    main()

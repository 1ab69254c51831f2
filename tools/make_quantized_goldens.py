#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/quantized: tiny models in the quantized formats of other tools, and what mlx-lm has of them.

    python tools/make_quantized_goldens.py [--out tests/golden/quantized]

NAME/            config.json and model.safetensors with random weights
expected.json    NAME: {tensor: [dtype, shape, crc32 of its bytes]} of the model in mlx-lm

AWQ is read by mlx-lm itself (without tokenizer). The others are formats that it reads for other architectures, or not at all: for them
the tensors are made here, by its formulas (deepseek_v3's `sanitize`) or the tools' own, and loaded as an MLX model.
Needs: mlx[cpu]==0.32.4 mlx-lm==0.32.2 torch numpy safetensors
"""
import argparse
import json
import pathlib
import tempfile
import zlib

import mlx.core as mx
import numpy as np
import torch
from mlx.utils import tree_flatten
from mlx_lm.utils import load_model
from safetensors.torch import save_file

CONFIG = dict(model_type="llama", hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=4,
              num_key_value_heads=2, head_dim=16, vocab_size=64, rms_norm_eps=1e-6, max_position_embeddings=256,
              rope_theta=10000.0, tie_word_embeddings=True)
LAYER = "model.layers.0."
SHAPES = {f"{LAYER}self_attn.q_proj": (64, 64), f"{LAYER}self_attn.k_proj": (32, 64), f"{LAYER}self_attn.v_proj": (32, 64),
          f"{LAYER}self_attn.o_proj": (64, 64), f"{LAYER}mlp.gate_proj": (96, 64), f"{LAYER}mlp.up_proj": (96, 64),
          f"{LAYER}mlp.down_proj": (64, 96)}
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
GROUP = 32

mx.set_default_device(mx.cpu)


def floats(random, dtype):
    norms = {f"{LAYER}input_layernorm.weight": 64, f"{LAYER}post_attention_layernorm.weight": 64, "model.norm.weight": 64}
    tensors = {name: torch.from_numpy(random.normal(1, 0.1, size)).to(dtype) for name, size in norms.items()}
    tensors["model.embed_tokens.weight"] = torch.from_numpy(random.normal(0, 1, (64, 64))).to(dtype)
    return tensors


def words(codes, order=range(8), bits=4):
    """Codes of the last axis, packed."""
    pack = 32 // bits
    parts = codes.reshape(*codes.shape[:-1], -1, pack).astype(np.uint32)
    packed = sum((parts[..., source] << np.uint32(bits * place) for place, source in enumerate(order)), np.zeros_like(parts[..., 0]))
    return torch.from_numpy(packed.view(np.int32).copy())


def to_mlx(tensor):
    """By way of the bytes, which mlx takes as they are."""
    if tensor.dtype == torch.int32:
        return mx.array(tensor.numpy().view(np.uint32))
    if tensor.dtype == torch.bfloat16:
        return mx.array(tensor.view(torch.int16).numpy().view(np.uint16)).view(mx.bfloat16)
    return mx.array(tensor.numpy())


def integers(random, shape, dtype, bits=4):
    rows, columns = shape
    codes = random.integers(0, 1 << bits, (rows, columns))
    zeros = random.integers(0, 1 << bits, (rows, columns // GROUP))
    scales = torch.from_numpy(random.uniform(0.005, 0.02, (rows, columns // GROUP))).to(dtype)
    return codes, zeros, scales


def affine(codes, zeros, scales, bits=4):
    biases = (-mx.array(zeros).astype(mx.float32) * to_mlx(scales)).astype(to_mlx(scales).dtype)
    return {"weight": to_mlx(words(codes, range(32 // bits), bits)), "scales": to_mlx(scales), "biases": biases}


def awq(random, shape, path):
    codes, zeros, scales = integers(random, shape, torch.float16)
    made = {"qweight": words(codes.T, AWQ_ORDER), "scales": scales.T}
    if not path.endswith("up_proj"):
        made["qzeros"] = words(zeros.T, AWQ_ORDER)
    return made, None


def gptq(random, shape, _):
    codes, zeros, scales = integers(random, shape, torch.float16)
    made = {"qweight": words(codes).T, "qzeros": words(zeros.T), "scales": scales.T,
            "g_idx": torch.arange(shape[1], dtype=torch.int32) // GROUP}
    return made, affine(codes, zeros + 1, scales)


def packed(random, shape, path):
    bits = 8 if path.endswith("o_proj") else 4
    codes, zeros, scales = integers(random, shape, torch.bfloat16, bits)
    made = {"weight_packed": words(codes, range(32 // bits), bits), "weight_scale": scales, "weight_shape": torch.tensor(shape)}
    if path.endswith("gate_proj"):
        made["weight_zero_point"] = words(zeros.T, range(32 // bits), bits).T
    else:
        zeros = np.full_like(zeros, 1 << (bits - 1))
    return made, affine(codes, zeros, scales, bits)


def mxfp4(random, shape, _):
    rows, columns = shape
    codes = torch.from_numpy(random.integers(0, 256, (rows, columns // 2), dtype=np.uint8))
    scales = torch.from_numpy(random.integers(116, 122, (rows, columns // GROUP), dtype=np.uint8))
    return {"weight_packed": codes, "weight_scale": scales}, {"weight": to_mlx(codes).view(mx.uint32), "scales": to_mlx(scales)}


def nvfp4(random, shape, _):
    rows, columns = shape
    codes = random.integers(0, 256, (rows, columns // 2), dtype=np.uint8)
    scales = torch.from_numpy(random.uniform(8, 400, (rows, columns // 16))).to(torch.float8_e4m3fn)
    divisor = torch.tensor([3000.0])
    halves = np.stack([codes & 15, codes >> 4], -1).reshape(rows, columns)
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)[halves & 7] * np.where(halves & 8, -1, 1).astype(np.float32)
    weight = torch.from_numpy(values) * (scales.float() / divisor).repeat_interleave(16, 1)
    made = {"weight_packed": torch.from_numpy(codes), "weight_scale": scales, "weight_global_scale": divisor}
    return made, {"weight": to_mlx(weight.to(torch.bfloat16))}


def fp8(random, shape, path):
    """Blocks of 32 by 48, the last ones cut; the layer's first ones have a scale for all or for each row."""
    rows, columns = shape
    weight = torch.from_numpy(random.normal(0, 60, shape)).to(torch.float8_e4m3fn)
    size = {"q_proj": (), "k_proj": (1,), "v_proj": (rows, 1)}.get(path.split(".")[-1], (-(-rows // 32), -(-columns // 48)))
    scale = torch.from_numpy(random.uniform(0.0005, 0.002, size)).to(torch.bfloat16 if path.endswith("down_proj") else torch.float32)
    wide = mx.from_fp8(mx.array(weight.view(torch.uint8).numpy()), dtype=mx.bfloat16)
    factor = to_mlx(scale)
    if len(size) == 2 and size[1] == 2:
        factor = mx.repeat(mx.repeat(factor, 32, 0), 48, 1)[:rows, :columns]
    leaf = "weight_scale" if path.endswith("v_proj") else "weight_scale_inv"
    return {"weight": weight, leaf: scale, "input_scale": torch.ones(1)}, {"weight": (wide * factor).astype(mx.bfloat16)}


def fp8_powers(random, shape, path):
    """Scales of E8M0 for blocks of 32 by 32; the layer's first ones have a power of two for all, or for each row, as floats."""
    rows, columns = shape
    weight = torch.from_numpy(random.normal(0, 60, shape)).to(torch.float8_e4m3fn)
    size = {"q_proj": (1, 1), "v_proj": (rows, 1)}.get(path.split(".")[-1], (rows // 32, columns // 32))
    powers = random.integers(-12, -8, size)
    scale = torch.from_numpy(2.0**powers).to(torch.float32)
    if size[1] > 1:
        scale = scale.to(torch.float8_e8m0fnu)
    codes = mx.array((powers + 127).astype(np.uint8))
    codes = mx.repeat(mx.repeat(codes, rows // size[0], 0), columns // 32 // size[1], 1)
    return {"weight": weight, "weight_scale_inv": scale}, {
        "weight": mx.array(weight.view(torch.uint8).numpy()).view(mx.uint32), "scales": codes}


def int8(random, shape, path):
    """A scale for each row, for 32 inputs, or for all."""
    rows, columns = shape
    kind = path.split(".")[-1]
    groups = columns // GROUP if kind in ("gate_proj", "down_proj") else 1
    codes = random.integers(-128, 128, (rows, columns))
    scales = torch.from_numpy(random.uniform(0.0005, 0.002, (1,) if kind == "q_proj" else (rows, groups))).to(torch.bfloat16)
    made = {"weight": torch.from_numpy(codes).to(torch.int8), "weight_scale": scales, "input_scale": torch.ones(1)}
    zeros = np.zeros(tuple(scales.shape), np.int64)
    if kind in ("v_proj", "gate_proj"):
        zeros = random.integers(-128, 128, zeros.shape)
        made["weight_zero_point"] = torch.from_numpy(zeros).to(torch.int8)
    size = next(known for known in (128, 64, 32) if columns // groups % known == 0)
    wide = (rows, groups)
    scales = torch.broadcast_to(scales, wide).repeat_interleave(columns // groups // size, 1).contiguous()
    zeros = np.broadcast_to(zeros, wide).repeat(columns // groups // size, 1)
    return made, affine(codes + 128, zeros + 128, scales, 8)


def bitnet(random, shape, path):
    rows, columns = shape
    codes = random.integers(0, 3, (rows, columns))
    quarters = codes.reshape(4, rows // 4, columns).astype(np.uint8)
    scale = torch.from_numpy(random.uniform(20, 60, 1)).to(torch.bfloat16)
    size = 64 if columns % 64 == 0 else 32
    scales = torch.broadcast_to(1 / scale.float(), (rows, columns // size)).contiguous()
    made = {"weight": torch.from_numpy(sum(part << (2 * i) for i, part in enumerate(quarters))), "weight_scale": scale}
    return made, affine(codes, np.ones((rows, columns // size)), scales, 2)


def modelopt(random, shape, path):
    made, _ = nvfp4(random, shape, path)
    factor = torch.tensor(0.0004)
    codes = made["weight_packed"].numpy()
    halves = np.stack([codes & 15, codes >> 4], -1).reshape(shape)
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)[halves & 7] * np.where(halves & 8, -1, 1).astype(np.float32)
    weight = torch.from_numpy(values) * (made["weight_scale"].float() * factor).repeat_interleave(16, 1)
    made = {"weight": made["weight_packed"], "weight_scale": made["weight_scale"], "weight_scale_2": factor, "input_scale": torch.tensor(1.0)}
    return made, {"weight": to_mlx(weight.to(torch.bfloat16))}


CASES = {
    "awq": (awq, torch.float16, dict(quant_method="awq", bits=4, group_size=GROUP, version="gemm", zero_point=True)),
    "gptq": (gptq, torch.float16, dict(quant_method="gptq", bits=4, group_size=GROUP, desc_act=False, sym=False)),
    "packed": (packed, torch.bfloat16, dict(quant_method="compressed-tensors", format="pack-quantized")),
    "mxfp4": (mxfp4, torch.bfloat16, dict(quant_method="compressed-tensors", format="mxfp4-pack-quantized")),
    "nvfp4": (nvfp4, torch.bfloat16, dict(quant_method="compressed-tensors", format="nvfp4-pack-quantized")),
    "int8": (int8, torch.bfloat16, dict(quant_method="compressed-tensors", format="int-quantized")),
    "bitnet": (bitnet, torch.bfloat16, dict(quant_method="bitnet", linear_class="bitlinear")),
    "modelopt": (modelopt, torch.bfloat16, dict(quant_method="modelopt", quant_algo="NVFP4", ignore=["lm_head"])),
    "fp8": (fp8, torch.bfloat16, dict(quant_method="fp8", weight_block_size=[32, 48], activation_scheme="dynamic")),
    "fp8_powers": (fp8_powers, torch.bfloat16, dict(quant_method="fp8", weight_block_size=[32, 32], scale_fmt="ue8m0")),
}


def arrays_of(name, tensors, config, expected, folder):
    """What mlx-lm has of a model, of which `expected` are the quantized parts if it can't read them."""
    if name != "awq":
        plain = {key: to_mlx(tensor) for key, tensor in tensors.items() if key.rsplit(".", 1)[0] not in SHAPES}
        folder = pathlib.Path(folder)
        mx.save_safetensors(str(folder / "model.safetensors"), plain | expected)
        mode = {"mxfp4": "mxfp4", "fp8_powers": "mxfp8"}.get(name, "affine")
        section = {"quantization": {"group_size": GROUP, "bits": 8 if mode == "mxfp8" else 4, "mode": mode}} if name not in ("fp8", "nvfp4", "modelopt") else {}
        own = {key: value for key, value in config.items() if key != "quantization_config"}
        (folder / "config.json").write_text(json.dumps(own | section))
    model, _ = load_model(folder)
    return {key: [str(array.dtype).removeprefix("mlx.core."), list(array.shape),
                  zlib.crc32(np.array(array.reshape(-1).view(mx.uint8)))] for key, array in tree_flatten(model.parameters())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1] / "tests/golden/quantized")
    out = parser.parse_args().out
    expected = {}
    for name, (make, dtype, section) in CASES.items():
        random = np.random.default_rng(8)
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        tensors, arrays = floats(random, dtype), {}
        for path, shape in SHAPES.items():
            made, theirs = make(random, shape, path)
            tensors |= {f"{path}.{leaf}": tensor.contiguous() for leaf, tensor in made.items()}
            arrays |= {f"{path}.{leaf}": array for leaf, array in (theirs or {}).items()}
        config = dict(CONFIG, quantization_config=section)
        save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        with tempfile.TemporaryDirectory() as scratch:
            expected[name] = arrays_of(name, tensors, config, arrays, folder if name == "awq" else scratch)
        print(f"{name}: {sum(file.stat().st_size for file in folder.iterdir()) / 1e3:.0f} kB", flush=True)
    (out / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    main()

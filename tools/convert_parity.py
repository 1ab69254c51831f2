#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `saker convert` with mlx_lm.convert: every tensor bit for bit, and the configuration.

    python tools/convert_parity.py --saker build/release/saker [--seeds 100 101] [--models llama qwen3_5]
    python tools/convert_parity.py --write-goldens      rewrites tests/golden/convert.json

Fresh random models of every architecture, as mlx-lm and as their makers store them, quantized in every mode, by every
recipe, dequantized and in other dtypes. What saker wrote must also load in mlx-lm. Ends with 'N passed, N failed'. Needs tools/parity_requirements.txt.
"""

import argparse
import contextlib
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zlib

import make_goldens
import mlx.core as mx
import numpy as np
from hybrid_goldens import published_hybrid
from mlx.utils import tree_flatten
from mlx_lm import utils
from mlx_lm.convert import convert

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests/golden"
WIDTHS = [{"bits": bits} for bits in (2, 3, 4, 5, 6, 8)]
SMALL = [{"mode": mode} for mode in ("mxfp4", "nvfp4", "mxfp8")]
RECIPES = [{"recipe": f"mixed_{name}"} for name in ("2_6", "3_4", "3_6", "4_6")]
DTYPES = ("float16", "bfloat16", "float32")
COMMON = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "rms_norm_eps": 1e-6,
          "vocab_size": 256, "max_position_embeddings": 512, "rope_theta": 10000.0, "_name_or_path": "nowhere"}
NESTED = {key: COMMON[key] for key in ("vocab_size",)}
GEMMA = {"hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 4, "query_pre_attn_scalar": 32,
         "hidden_activation": "gelu_pytorch_tanh", "sliding_window": 8, **COMMON}
GEMMA4 = {"model_type": "gemma4_text", "hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 6,
          "num_kv_shared_layers": 3, "layer_types": ["sliding_attention", "full_attention"] * 3, "global_head_dim": 64,
          "hidden_size_per_layer_input": 64, "use_double_wide_mlp": True, "vocab_size_per_layer_input": 256, "sliding_window": 8,
          "tie_word_embeddings": True, **COMMON}
QWEN3_5 = {"model_type": "qwen3_5_text", "hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 4,
           "full_attention_interval": 2, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
           "linear_key_head_dim": 32, "linear_value_head_dim": 32, "linear_conv_kernel_dim": 4,
           "tie_word_embeddings": False,
           "rope_parameters": {"rope_type": "default", "rope_theta": 1e5, "partial_rotary_factor": 0.25}, **COMMON}
SHARED_MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 96, "shared_expert_intermediate_size": 192,
              "norm_topk_prob": True, "decoder_sparse_step": 1, "mlp_only_layers": []}
LOCAL_MOE = {"hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
             "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
GLM4_MOE = {"model_type": "glm4_moe", "hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 3, "n_routed_experts": 4,
            "num_experts_per_tok": 2, "moe_intermediate_size": 96, "n_shared_experts": 1, "first_k_dense_replace": 1, "n_group": 1,
            "topk_group": 1, "routed_scaling_factor": 1.5, "norm_topk_prob": True, "use_qk_norm": True, "attention_bias": True,
            "tie_word_embeddings": False, "partial_rotary_factor": 0.5, "rope_scaling": {"rope_type": "default"},
            "torch_dtype": "bfloat16"}
AFMOE = {"model_type": "afmoe", "hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 3, "num_experts": 4,
         "layer_types": ["sliding_attention", "sliding_attention", "full_attention"], "num_experts_per_tok": 2,
         "moe_intermediate_size": 96, "num_shared_experts": 1, "num_dense_layers": 1, "route_norm": True, "route_scale": 1.5,
         "score_func": "sigmoid", "sliding_window": 8, "mup_enabled": True, "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
LAGUNA = {"model_type": "laguna", "hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 2, "num_experts": 4,
          "layer_types": ["full_attention", "sliding_attention"], "num_experts_per_tok": 2, "moe_intermediate_size": 96,
          "shared_expert_intermediate_size": 96, "sliding_window": 8, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
          "rope_parameters": {"full_attention": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5},
                              "sliding_attention": {"rope_type": "default", "rope_theta": 1e3}}}
MAMBA = {"mamba_n_heads": 4, "mamba_d_head": 64, "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_expand": 2,
         "mamba_conv_bias": True, "mamba_proj_bias": False, "attention_bias": False}
FALCON_H1 = {"model_type": "falcon_h1", "hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 2, "mamba_d_ssm": 256,
             "mamba_rms_norm": False, "attention_in_multiplier": 0.7, "attention_out_multiplier": 0.9, "embedding_multiplier": 3.0,
             "key_multiplier": 1.0, "lm_head_multiplier": 0.8, "mlp_multipliers": [0.9, 0.6], "ssm_in_multiplier": 1.3,
             "ssm_out_multiplier": 0.55, "ssm_multipliers": [0.4, 0.5, 0.6, 0.7, 0.8], "tie_word_embeddings": False,
             "torch_dtype": "bfloat16", **MAMBA}
GRANITE_HYBRID = {"model_type": "granitemoehybrid", "hidden_size": 128, "intermediate_size": 192, "shared_intermediate_size": 192,
                  "num_hidden_layers": 2, "layer_types": ["mamba", "attention"], "embedding_multiplier": 3.0,
                  "attention_multiplier": 0.3, "residual_multiplier": 0.5, "logits_scaling": 2.0, "num_local_experts": 0,
                  "position_embedding_type": "nope", "tie_word_embeddings": True, "torch_dtype": "bfloat16", **MAMBA}
LFM2_MOE = {"model_type": "lfm2_moe", "hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 3, "norm_eps": 1e-5,
            "conv_L_cache": 3, "conv_bias": False, "layer_types": ["conv", "full_attention", "conv"], "moe_intermediate_size": 96,
            "num_experts": 4, "num_experts_per_tok": 2, "num_dense_layers": 1, "norm_topk_prob": True, "use_expert_bias": True,
            "rope_parameters": {"rope_theta": 1e5, "rope_type": "default"}, "tie_word_embeddings": True, "torch_dtype": "bfloat16"}
MODELS = {
    "afmoe_moe": {**AFMOE, **COMMON},
    "afmoe_moe_published": {**AFMOE, **COMMON},
    "laguna_moe": {**LAGUNA, **COMMON},
    "laguna_moe_published": {**LAGUNA, **COMMON},
    "apertus": {"model_type": "apertus", "hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 3, "mlp_bias": False,
                "attention_bias": False, "post_norm": False, "qk_norm": True, "hidden_act": "xielu", "tie_word_embeddings": False,
                "torch_dtype": "bfloat16", **COMMON},
    "mimo": {"model_type": "mimo", "hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 3,
             "num_nextn_predict_layers": 1, "tie_word_embeddings": False, "torch_dtype": "bfloat16", **COMMON},
    "falcon_h1": {**FALCON_H1, **COMMON},
    "falcon_h1_published": {**FALCON_H1, **COMMON},
    "granite_hybrid": {**GRANITE_HYBRID, **COMMON},
    "granite_hybrid_published": {**GRANITE_HYBRID, **COMMON},
    "lfm2_moe": {**LFM2_MOE, **COMMON},
    "lfm2_moe_published": {**LFM2_MOE, **COMMON},
    "llama": {"model_type": "llama", "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 9,
              "tie_word_embeddings": False, "torch_dtype": "bfloat16", **COMMON},
    "mistral": {"model_type": "mistral", "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 3,
                "tie_word_embeddings": False, "torch_dtype": "bfloat16", **COMMON},
    "qwen2": {"model_type": "qwen2", "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 3,
              "tie_word_embeddings": True, "torch_dtype": "bfloat16", **COMMON},
    "qwen3": {"model_type": "qwen3", "hidden_size": 256, "intermediate_size": 416, "num_hidden_layers": 3,
              "tie_word_embeddings": True, **COMMON},
    "qwen3_moe": {"model_type": "qwen3_moe", "hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2,
                  "num_experts": 4, "num_experts_per_tok": 2, "decoder_sparse_step": 2, "mlp_only_layers": [],
                  "moe_intermediate_size": 96, "norm_topk_prob": True, "tie_word_embeddings": False,
                  "torch_dtype": "float16", **COMMON},
    "qwen3_5": {"model_type": "qwen3_5", "text_config": QWEN3_5, "torch_dtype": "bfloat16", **NESTED},
    "qwen3_5_flat": {**QWEN3_5, "model_type": "qwen3_5", "torch_dtype": "float16"},
    "qwen3_5_published": {"model_type": "qwen3_5", "text_config": {**QWEN3_5, "dtype": "bfloat16"},
                          "vision_config": {"depth": 1}, **NESTED},
    "qwen3_5_moe": {"model_type": "qwen3_5_moe", "text_config": {**QWEN3_5, **SHARED_MOE, "model_type": "qwen3_5_moe_text"},
                    "torch_dtype": "bfloat16", **NESTED},
    "qwen3_next_moe": {**QWEN3_5, **SHARED_MOE, "model_type": "qwen3_next", "rope_theta": 1e5, "partial_rotary_factor": 0.25,
                       "torch_dtype": "bfloat16"},
    "qwen2_moe": {**SHARED_MOE, **COMMON, "model_type": "qwen2_moe", "hidden_size": 128, "intermediate_size": 192,
                  "num_hidden_layers": 2, "tie_word_embeddings": False, "torch_dtype": "bfloat16"},
    "mixtral_moe": {**LOCAL_MOE, **COMMON, "model_type": "mixtral"},
    "olmoe": {**LOCAL_MOE, **COMMON, "model_type": "olmoe", "num_experts": 4},
    "granite_moe": {**LOCAL_MOE, **COMMON, "model_type": "granitemoe", "embedding_multiplier": 3.0, "attention_multiplier": 0.3,
                    "residual_multiplier": 0.5, "logits_scaling": 2.0, "attention_bias": False},
    "minimax_moe": {**LOCAL_MOE, **COMMON, "model_type": "minimax_m2", "rotary_dim": 16, "shared_intermediate_size": 0,
                    "scoring_func": "sigmoid"},
    "glm4_moe": {**GLM4_MOE, **COMMON},
    "dots1_moe": {**GLM4_MOE, **COMMON, "model_type": "dots1", "scoring_func": "sigmoid", "moe_layer_freq": 1,
                  "pretraining_tp": 1, "attention_bias": False, "partial_rotary_factor": 1.0},
    "gemma": {"model_type": "gemma", **GEMMA, "torch_dtype": "bfloat16"},
    "gemma2": {"model_type": "gemma2", "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, **GEMMA,
               "torch_dtype": "bfloat16"},
    "gemma3": {"model_type": "gemma3_text", "sliding_window_pattern": 2, "rope_local_base_freq": 1e4, **GEMMA,
               "torch_dtype": "bfloat16"},
    "gemma3_nested": {"model_type": "gemma3", "torch_dtype": "bfloat16", **NESTED, "text_config": {
        "model_type": "gemma3_text", "sliding_window_pattern": 2, "rope_local_base_freq": 1e4, **GEMMA}},
    "gemma3_published": {"model_type": "gemma3", "torch_dtype": "bfloat16", **NESTED, "text_config": {
        "model_type": "gemma3_text", "sliding_window_pattern": 2, "rope_local_base_freq": 1e4, **GEMMA}},
    "gemma4": {**GEMMA4, "torch_dtype": "bfloat16"},
    "gemma4_published": {"model_type": "gemma4", "text_config": {**GEMMA4, "dtype": "bfloat16"}, **NESTED},
    "gemma4_moe": {**GEMMA4, "num_hidden_layers": 2, "num_kv_shared_layers": 0, "hidden_size_per_layer_input": 0,
                   "layer_types": ["sliding_attention", "full_attention"], "enable_moe_block": True, "num_experts": 4,
                   "top_k_experts": 2, "moe_intermediate_size": 96, "torch_dtype": "bfloat16"},
    "gpt_oss": {"model_type": "gpt_oss", "hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 2,
                "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 8, "tie_word_embeddings": False,
                "layer_types": ["sliding_attention", "full_attention"], "torch_dtype": "bfloat16", **COMMON},
    "gemma4_unified": {"model_type": "gemma4_unified", "text_config": {**GEMMA4, "dtype": "float16"}, **NESTED},
}


def saker_flags(options: dict) -> list[str]:
    return [part for key, value in options.items()
            for part in ([f"--{key.replace('_', '-')}"] if value is True else [f"--{key.replace('_', '-')}", str(value)])]


def mlx_options(options: dict) -> dict:
    dequantize, dtype = options.get("dequantize", False), options.get("dtype")
    quantize = bool(set(options) - {"dequantize", "dtype"})
    group = options.get("group_size", 64 if "recipe" in options else None)
    return {"quantize": quantize, "q_bits": options.get("bits"), "q_group_size": group,
            "q_mode": options.get("mode", "affine"), "quant_predicate": options.get("recipe"),
            "dequantize": dequantize, "dtype": dtype}


def with_tokenizer(source: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """A copy that has the tokenizer that mlx_lm.convert asks for."""
    shutil.copytree(source, folder)
    words = {f"t{i}": i for i in range(16)}
    model = {"type": "WordLevel", "vocab": words, "unk_token": "t0"}
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "added_tokens": [], "model": model}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    return folder


def by_mlx(source: pathlib.Path, target: pathlib.Path, options: dict) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        convert(str(source), str(target), **mlx_options(options))


def tensors_of(folder: pathlib.Path) -> dict:
    tensors = {}
    for file in sorted(folder.glob("model*.safetensors")):
        tensors |= mx.load(str(file))
    return {name: [str(t.dtype).removeprefix("mlx.core."), list(t.shape), zlib.crc32(np.array(t.reshape(-1).view(mx.uint8)))]
            for name, t in tensors.items()}


def config_of(folder: pathlib.Path, options: dict) -> dict:
    config = json.loads((folder / "config.json").read_text())
    if "dtype" in options:
        config.pop("torch_dtype", None)  # mlx-lm leaves the old one.
    rope = config.get("text_config", config).get("rope_parameters", {})
    if "type" in rope:
        rope["rope_type"] = rope.pop("type")  # mlx-lm renames it while it loads a model.
    return config


def published(name: str, weights: dict) -> dict:
    """The weights as the model's makers store them; of some with parts for images that no text model reads."""
    kind = MODELS[name]["model_type"]
    if kind in ("falcon_h1", "granitemoehybrid", "lfm2_moe"):
        return published_hybrid(weights, kind)
    if kind in ("afmoe", "laguna"):
        weights = make_goldens.one_by_one(weights)
        return make_goldens.published_laguna(weights) if kind == "laguna" else weights
    raw = {}
    for key, value in weights.items():
        if name.startswith("qwen3_5"):
            if key.endswith("conv1d.weight"):
                value = value.moveaxis(2, 1)
            elif value.ndim == 1 and key.endswith("norm.weight") and not key.endswith("linear_attn.norm.weight"):
                value = value - 1.0
        if name != "gemma3_published":  # mlx-lm reads its older names only.
            key = key.replace("language_model.model.", "model.language_model.").removeprefix("language_model.")
        raw[key] = value
    scope = {"qwen3_5_published": "model.visual", "gemma3_published": "vision_tower"}.get(name, "model.vision_tower")
    image = next(iter(weights.values()))
    raw[f"{scope}.blocks.0.attn.qkv.weight"] = image.astype(mx.bfloat16)
    raw[f"{scope}.blocks.0.norm1.bias"] = image[0].astype(mx.float32)
    return raw


def random_model(name: str, dtype: str, seed: int, folder: pathlib.Path) -> pathlib.Path:
    config = json.loads(json.dumps(MODELS[name]))  # mlx-lm writes into it.
    model_class, args_class = utils._get_classes(config)
    mx.random.seed(seed)
    model = model_class(args_class.from_dict(config))
    kind = getattr(mx, dtype)
    weights = {k: (mx.random.normal(v.shape) * (mx.random.uniform(shape=v.shape) < 0.9) * 0.05).astype(kind)
               for k, v in tree_flatten(model.parameters())}
    for key in [key for key in weights if key.endswith("A_log")]:
        weights[key] = weights[key].astype(mx.float32)  # As published.
    if "published" in name:
        weights = published(name, weights)
    folder.mkdir()
    mx.save_safetensors(str(folder / "model.safetensors"), weights, {"format": "mlx"})
    (folder / "config.json").write_text(json.dumps(MODELS[name]))
    return folder


def differences(program: str, source: pathlib.Path, folder: pathlib.Path, options: dict) -> list[str]:
    ours, theirs = folder / "saker", folder / "mlx"
    done = subprocess.run([program, "convert", str(source), str(ours), *saker_flags(options)],
                          capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    if done.returncode:
        return [f"saker exited {done.returncode}: {done.stderr.strip()}"]
    by_mlx(source, theirs, options)
    mine, wanted = tensors_of(ours), tensors_of(theirs)
    found = [name for name in sorted(mine.keys() | wanted.keys()) if mine.get(name) != wanted.get(name)]
    if config_of(ours, options) != config_of(theirs, options):
        found.append("config.json")
    index = "model.safetensors.index.json"
    if json.loads((ours / index).read_text()) != json.loads((theirs / index).read_text()):
        found.append(index)
    with contextlib.redirect_stdout(io.StringIO()):
        model, _ = utils.load(str(ours))
    mx.eval(model.parameters())
    return found


def check(program: str, name: str, dtype: str, seed: int) -> tuple[int, int]:
    cases = [*({**width, "group_size": group} for width in WIDTHS for group in (32, 64, 128)), *SMALL, {"bits": 4}]
    if "moe" not in name and name != "gpt_oss":
        cases += [*RECIPES, {**RECIPES[2], "group_size": 32}]
    cases += [{}] + [{"dtype": other} for other in DTYPES] + [{**SMALL[0], "dtype": "float16"}, {"bits": 5, "dtype": "float32"}]
    passed = failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        work = pathlib.Path(temporary)
        source = with_tokenizer(random_model(name, dtype, seed, work / "plain"), work / "source")
        for number, options in enumerate(cases):
            folder = work / str(number)
            folder.mkdir()
            found = differences(program, source, folder, options)
            if not found and set(options) - {"dtype"}:
                (folder / "back").mkdir()
                found = differences(program, folder / "mlx", folder / "back", {"dequantize": True})
            passed, failed = passed + (not found), failed + bool(found)
            if found:
                print(f"FAILED {name} {dtype} seed {seed} {options}: {', '.join(found[:4])} of {len(found)}")
            shutil.rmtree(folder)
    return passed, failed


def golden_cases() -> list[tuple[str, dict]]:
    floats = [(name, {**options, **({"group_size": 32} if "bits" in options else {})})
              for name in ("llama", "qwen3_bf16", "llama_f16") for options in WIDTHS + SMALL]
    return [
        *floats,
        *(("qwen3_bf16", {**recipe, "group_size": 32}) for recipe in RECIPES),
        *((name, {"dequantize": True}) for name in ("qwen3_q4", "qwen3_q8", "qwen3_mixed", "qwen3_moe_q4")),
        *((name, {"bits": 4, "group_size": 32}) for name in ("qwen3_5", "qwen3_5_published", "gemma3_nested", "gemma4_small")),
        *((name, {"dtype": "bfloat16"}) for name in ("qwen3_5", "qwen3_5_published", "gemma", "gemma2", "gemma4")),
        ("qwen3_q4", {"dequantize": True, "dtype": "float16"}),
        ("qwen3_moe_single", {"dtype": "bfloat16"}),
        *((name, {"dtype": "bfloat16"}) for name in (
            "dots1", "glm4_moe", "granitemoe", "minimax_m2", "mixtral", "olmoe", "qwen2_moe", "qwen3_5_moe_published",
            "qwen3_next_published", "afmoe", "apertus", "falcon_h1", "granitemoehybrid", "laguna", "lfm2_moe", "mimo",
            "kimi_linear", "bailing_moe_v2", "bailing_hybrid")),
        ("bailing_hybrid", {"bits": 4, "group_size": 32}),
        *(("deepseek_v3_single", options) for options in ({"dtype": "bfloat16"}, {"bits": 4, "group_size": 32})),
        ("gemma3_nested", {"dtype": "float16"}),
        ("llama", {"mode": "mxfp8", "dtype": "bfloat16"}),
    ]


def write_goldens() -> None:
    goldens = []
    for name, options in golden_cases():
        with tempfile.TemporaryDirectory() as temporary:
            work = pathlib.Path(temporary)
            by_mlx(with_tokenizer(GOLDEN / name, work / "source"), work / "out", options)
            goldens.append({"source": name, "flags": saker_flags(options), "config": config_of(work / "out", options),
                            "tensors": tensors_of(work / "out")})
    lines = ",\n".join(json.dumps(golden, separators=(",", ":")) for golden in goldens)
    (GOLDEN / "convert.json").write_text(f"[\n{lines}\n]\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--saker")
    parser.add_argument("--seeds", type=int, nargs="+", default=[100])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS), metavar="NAME")
    parser.add_argument("--write-goldens", action="store_true")
    args = parser.parse_args()
    if args.write_goldens:
        write_goldens()
        return 0
    passed = failed = 0
    for seed in args.seeds:
        for name in args.models:
            for dtype in DTYPES:
                good, bad = check(args.saker, name, dtype, seed)
                passed, failed = passed + good, failed + bad
    print(f"{passed} passed, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tiny checkpoints of tests/golden and what they compute in float32.

    python tools/make_goldens.py [NAME ...] [--out tests/golden]

Each folder holds a checkpoint with random weights (config.json, model.safetensors) and golden.safetensors:

    ids      int32 [T]             the tokens
    logits   float32 [T, V]        after each of them
    tap.-1   float32 [T, hidden]   embedded rows, and the rows after each layer: tap.0, tap.1, ...
    greedy   int32 [n]             tokens that follow the first 8 ids, best first

The reference is mlx-lm, or transformers where mlx-lm lacks a feature (sliding windows of Gemma 2, Mistral and Qwen 2, the GELU of
Gemma 1). Where both have it, both run and must agree. Seeds are taken in turn until no greedy step is close.
Needs: mlx[cpu]==0.32.4 mlx-lm==0.32.2 transformers torch numpy
"""
import argparse
import json
import pathlib
import re

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten, tree_unflatten

mx.set_default_device(mx.cpu)

TOKENS, PROMPT, GREEDY = 20, 8, 12
ONLY_HF = ("hunyuan_v1_moe", "cohere2_moe")  # mlx-lm has no such model.
AGREE = 5e-5  # Largest difference of logits between the two references.
MIN_GAP, MIN_GAP_HALF = 0.04, 0.2  # Between the two best logits of a greedy step; where rows or operands are bf16.

BASE = dict(hidden_size=32, num_hidden_layers=2, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2,
            head_dim=8, vocab_size=96, rms_norm_eps=1e-6, max_position_embeddings=512, rope_theta=10000.0)
GEMMA = dict(BASE, hidden_size=36, query_pre_attn_scalar=24, hidden_activation="gelu_pytorch_tanh")
MOE = dict(model_type="qwen3_moe", tie_word_embeddings=False, num_experts=6, num_experts_per_tok=3,
           moe_intermediate_size=20, mlp_only_layers=[])
SHARED_MOE = dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=24, shared_expert_intermediate_size=40)
# Names of experts' projections in Mixtral's checkpoints and those of its like.
W123 = [("gate_proj", "w1"), ("up_proj", "w3"), ("down_proj", "w2")]
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=64)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)
NESTED = dict(full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6),
              sliding_attention=dict(rope_type="default", rope_theta=1e4))

HYBRID = dict(BASE, model_type="qwen3_5_text", rope_theta=None, linear_num_key_heads=2, linear_key_head_dim=6,
              linear_value_head_dim=10, linear_conv_kernel_dim=4, tie_word_embeddings=True,
              rope_parameters=dict(rope_type="default", rope_theta=1e5, partial_rotary_factor=0.25))

GEMMA4 = dict(BASE, model_type="gemma4_text", hidden_size=36, hidden_activation="gelu_pytorch_tanh", rope_theta=None,
              sliding_window=6, global_head_dim=16, vocab_size_per_layer_input=96, final_logit_softcapping=6.0,
              tie_word_embeddings=True, use_double_wide_mlp=False, num_kv_shared_layers=0, hidden_size_per_layer_input=0,
              rope_parameters=dict(full_attention=dict(rope_type="proportional", partial_rotary_factor=0.25, rope_theta=1e4),
                                   sliding_attention=dict(rope_type="default", rope_theta=1e3)))
# Layers 3, 4 and 5 attend to the rows of 1, 2 and 1.
GEMMA4_SMALL = dict(GEMMA4, num_hidden_layers=6, num_kv_shared_layers=3, use_double_wide_mlp=True,
                    layer_types=["sliding_attention", "full_attention"] * 3, num_key_value_heads=1)

LONGROPE = dict(type="longrope", short_factor=[1.0, 1.1, 1.2, 1.3, 1.4, 1.5], long_factor=[1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
MINISTRAL3 = dict(BASE, model_type="ministral3", tie_word_embeddings=True, rope_theta=None, rope_parameters=dict(
    type="yarn", rope_theta=1e4, factor=4.0, original_max_position_embeddings=6, beta_fast=32.0, beta_slow=1.0, mscale=1.0,
    mscale_all_dim=1.0, llama_4_scaling_beta=0.5))

QWEN3_NEXT = dict(BASE, **SHARED_MOE, model_type="qwen3_next", num_hidden_layers=3, full_attention_interval=3,
                  linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=12,
                  linear_conv_kernel_dim=4, tie_word_embeddings=False, norm_topk_prob=True, decoder_sparse_step=1,
                  mlp_only_layers=[1], partial_rotary_factor=0.25, rope_theta=1e5)
MIXTRAL = dict(model_type="mixtral", num_local_experts=5, num_experts_per_tok=2, tie_word_embeddings=False)
GLM4_MOE = dict(model_type="glm4_moe", n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=20,
                n_shared_experts=2, first_k_dense_replace=1, num_hidden_layers=3, n_group=4, topk_group=2,
                routed_scaling_factor=1.5, norm_topk_prob=True, use_qk_norm=True, attention_bias=True,
                tie_word_embeddings=False, partial_rotary_factor=0.5, rope_scaling=dict(rope_type="default"))

MLX, HF, BOTH = "mlx-lm", "transformers", "both"
# name: (reference, configuration over BASE, options)
CASES = {
    "llama": (BOTH, dict(model_type="llama", tie_word_embeddings=False, rope_scaling=LLAMA3), {}),
    "llama_bias": (BOTH, dict(model_type="llama", hidden_size=36, attention_bias=True, mlp_bias=True, tie_word_embeddings=True,
                              num_attention_heads=3, num_key_value_heads=1, head_dim=10,
                              rope_scaling=dict(type="linear", factor=4.0)), {}),
    "llama_layers": (MLX, dict(model_type="llama", tie_word_embeddings=True, sliding_window=5,
                               layer_types=["sliding_attention", "full_attention"]), {}),
    "llama_f16": (MLX, dict(model_type="llama", tie_word_embeddings=False), dict(dtype=mx.float16)),
    "mistral": (HF, dict(model_type="mistral", tie_word_embeddings=False, sliding_window=6), {}),
    "qwen2": (BOTH, dict(model_type="qwen2", tie_word_embeddings=True, use_sliding_window=False, sliding_window=4,
                         max_window_layers=0), {}),
    "qwen2_window": (HF, dict(model_type="qwen2", tie_word_embeddings=False, use_sliding_window=True,
                              sliding_window=5, max_window_layers=1), {}),
    "qwen3": (BOTH, dict(model_type="qwen3", tie_word_embeddings=True), {}),
    "qwen3_yarn": (BOTH, dict(model_type="qwen3", tie_word_embeddings=False, rope_theta=None,
                              rope_parameters=dict(YARN, rope_theta=5000.0)), {}),
    "qwen3_bf16": (MLX, dict(model_type="qwen3", tie_word_embeddings=False, num_hidden_layers=3),
                   dict(dtype=mx.bfloat16)),
    "qwen3_q4": (MLX, dict(model_type="qwen3", tie_word_embeddings=True, hidden_size=64, intermediate_size=96,
                           head_dim=16), dict(dtype=mx.bfloat16, bits=4)),
    "qwen3_q8": (MLX, dict(model_type="qwen3", tie_word_embeddings=False, hidden_size=64, intermediate_size=96,
                           head_dim=16), dict(dtype=mx.bfloat16, bits=8)),
    "qwen3_mixed": (MLX, dict(model_type="qwen3", tie_word_embeddings=True, hidden_size=64, intermediate_size=96,
                              head_dim=16), dict(dtype=mx.bfloat16, bits=4, wide="v_proj up_proj")),
    "qwen3_moe": (BOTH, dict(MOE, num_hidden_layers=3, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[1]),
                  {}),
    "qwen3_moe_single": (BOTH, dict(MOE, norm_topk_prob=False, decoder_sparse_step=2), dict(one_by_one=True)),
    # All experts are chosen, since rounding can turn a choice.
    "qwen3_moe_q4": (MLX, dict(MOE, hidden_size=64, intermediate_size=96, head_dim=16, num_experts=3,
                               moe_intermediate_size=32, norm_topk_prob=True, decoder_sparse_step=1),
                     dict(dtype=mx.bfloat16, bits=4, wide="gate up_proj")),
    "qwen3_5": (BOTH, dict(model_type="qwen3_5", vocab_size=96, text_config=dict(
        HYBRID, num_hidden_layers=3, full_attention_interval=3, linear_num_value_heads=4)), {}),
    "qwen3_5_published": (HF, dict(model_type="qwen3_5", vocab_size=96, text_config=dict(
        HYBRID, linear_num_value_heads=2, full_attention_interval=2,
        layer_types=["linear_attention", "full_attention"])), dict(published=True)),
    "qwen3_5_moe": (BOTH, dict(model_type="qwen3_5_moe", vocab_size=96, text_config=dict(
        HYBRID, **SHARED_MOE, model_type="qwen3_5_moe_text", full_attention_interval=2, linear_num_value_heads=4)), {}),
    "qwen3_5_moe_published": (HF, dict(model_type="qwen3_5_moe", vocab_size=96, text_config=dict(
        HYBRID, **SHARED_MOE, model_type="qwen3_5_moe_text", full_attention_interval=2, linear_num_value_heads=4,
        layer_types=["linear_attention", "full_attention"])), dict(published=True, fused=True)),
    "qwen3_next": (BOTH, QWEN3_NEXT, {}),
    "qwen3_next_published": (HF, dict(QWEN3_NEXT, mlp_only_layers=[]), dict(published=True, one_by_one=True)),
    "qwen3_vl_moe": (MLX, dict(model_type="qwen3_vl_moe", vocab_size=96, text_config=dict(
        BASE, **dict(MOE, tie_word_embeddings=True), norm_topk_prob=True, decoder_sparse_step=1,
        rope_scaling=dict(rope_type="default", mrope_section=[2, 1, 1], mrope_interleaved=True))),
        dict(fused=True, turned=True)),
    "qwen2_moe": (BOTH, dict(model_type="qwen2_moe", **SHARED_MOE, tie_word_embeddings=False, norm_topk_prob=False,
                             decoder_sparse_step=1, mlp_only_layers=[], num_hidden_layers=3), dict(one_by_one=True)),
    "mixtral": (BOTH, MIXTRAL, dict(one_by_one=True, names=W123)),
    "mixtral_window": (HF, dict(MIXTRAL, sliding_window=6), dict(one_by_one=True, names=W123)),
    # llama.cpp's converter takes this eps for any.
    "olmoe": (BOTH, dict(model_type="olmoe", num_experts=5, num_experts_per_tok=3, tie_word_embeddings=False,
                         norm_topk_prob=False, rms_norm_eps=1e-5), dict(one_by_one=True)),
    "granitemoe": (BOTH, dict(model_type="granitemoe", num_local_experts=5, num_experts_per_tok=2, tie_word_embeddings=True,
                              embedding_multiplier=3.0, attention_multiplier=0.3, residual_multiplier=0.5,
                              logits_scaling=2.0, attention_bias=False),
                   dict(fused=True, names=[("experts.gate_up_proj", "input_linear.weight"),
                                           ("experts.down_proj", "output_linear.weight")])),
    "glm4_moe": (BOTH, GLM4_MOE, dict(one_by_one=True)),
    "dots1": (HF, dict(GLM4_MOE, model_type="dots1", scoring_func="sigmoid", moe_layer_freq=1, pretraining_tp=1,
                       sliding_window=None, attention_bias=False, partial_rotary_factor=None), dict(one_by_one=True)),
    "minimax_m2": (BOTH, dict(model_type="minimax_m2", num_local_experts=6, num_experts_per_tok=2, rotary_dim=4,
                              shared_intermediate_size=0, scoring_func="sigmoid", tie_word_embeddings=False),
                   dict(one_by_one=True, names=W123)),
    "ernie4_5_moe": (HF, dict(model_type="ernie4_5_moe", moe_num_experts=6, moe_k=2, moe_intermediate_size=20,
                              moe_num_shared_experts=2, moe_layer_start_index=1, moe_layer_end_index=2, moe_layer_interval=1,
                              num_hidden_layers=3, use_bias=False, tie_word_embeddings=True, moe_use_aux_free=True),
                     dict(one_by_one=True, more={"mlp.moe_statics.e_score_correction_bias": (1, 6)})),
    "hunyuan_v1_moe": (HF, dict(model_type="hunyuan_v1_moe", num_experts=5, moe_topk=2, tie_word_embeddings=False,
                                attention_bias=False, rope_parameters=dict(rope_type="dynamic", rope_theta=1e4, alpha=100.0,
                                                                           factor=1.0)), {}),
    "cohere2_moe": (HF, dict(model_type="cohere2_moe", num_experts=5, num_experts_per_tok=2, num_shared_experts=2,
                             tie_word_embeddings=True, num_hidden_layers=5, sliding_window=5, sliding_window_pattern=4,
                             layer_norm_eps=1e-5, rms_norm_eps=None, logit_scale=0.25, first_k_dense_replace=1,
                             expert_selection_fn="sigmoid", prefix_dense_intermediate_size=40), {}),
    "gemma": (HF, dict(model_type="gemma", hidden_act="gelu"), {}),
    "gemma2": (HF, dict(GEMMA, model_type="gemma2", sliding_window=6, attn_logit_softcapping=5.0,
                        final_logit_softcapping=4.0), {}),
    "gemma3": (BOTH, dict(GEMMA, model_type="gemma3_text", sliding_window=8, sliding_window_pattern=2,
                          rope_local_base_freq=1000.0, rope_scaling=dict(rope_type="linear", factor=8.0)), {}),
    "gemma3_nested": (HF, dict(model_type="gemma3", vocab_size=96, text_config=dict(
        GEMMA, model_type="gemma3_text", sliding_window=4, rope_theta=None, rope_parameters=NESTED,
        layer_types=["full_attention", "sliding_attention"])), {}),
    "gemma4": (BOTH, dict(model_type="gemma4", vocab_size=96, text_config=dict(
        GEMMA4, num_hidden_layers=4, attention_k_eq_v=True, num_global_key_value_heads=1,
        layer_types=["sliding_attention", "full_attention"] * 2)), {}),
    "gemma4_small": (BOTH, dict(GEMMA4_SMALL, hidden_size_per_layer_input=10), {}),
    "smollm3": (BOTH, dict(model_type="smollm3", tie_word_embeddings=True, num_hidden_layers=4, no_rope_layers=[1, 1, 0, 1]), {}),
    "granite": (BOTH, dict(model_type="granite", tie_word_embeddings=True, embedding_multiplier=3.0, attention_multiplier=0.3,
                           residual_multiplier=0.5, logits_scaling=2.0, attention_bias=False, mlp_bias=False), {}),
    "olmo2": (BOTH, dict(model_type="olmo2", tie_word_embeddings=False), {}),
    # transformers takes any other theta for full layers only.
    "olmo3": (BOTH, dict(model_type="olmo3", tie_word_embeddings=False, num_hidden_layers=4, sliding_window=5, rope_theta=5e5,
                         layer_types=["sliding_attention"] * 3 + ["full_attention"],
                         rope_scaling=YARN), {}),
    # The prompt exceeds the original context, so that transformers has the long factors in every pass.
    "phi3": (BOTH, dict(model_type="phi3", tie_word_embeddings=False, hidden_size=64, head_dim=16, partial_rotary_factor=0.75,
                        original_max_position_embeddings=6, rope_scaling=LONGROPE), {}),
    "phi3_window": (HF, dict(model_type="phi3", tie_word_embeddings=True, sliding_window=6), {}),
    "ministral3": (BOTH, MINISTRAL3, {}),
    "mistral3": (MLX, dict(model_type="mistral3", vocab_size=96, text_config=dict(MINISTRAL3)), {}),
    "cohere2": (BOTH, dict(model_type="cohere2", tie_word_embeddings=True, num_hidden_layers=4, sliding_window=5,
                           sliding_window_pattern=4, layer_norm_eps=1e-5, logit_scale=0.25), {}),
    "qwen3_vl": (MLX, dict(model_type="qwen3_vl", vocab_size=96, text_config=dict(
        BASE, model_type="qwen3_vl_text", tie_word_embeddings=True,
        rope_scaling=dict(rope_type="default", mrope_section=[2, 1, 1], mrope_interleaved=True))), {}),
    "seed_oss": (BOTH, dict(model_type="seed_oss", tie_word_embeddings=False, attention_bias=True, attention_out_bias=False,
                            mlp_bias=False), {}),
    "exaone4": (BOTH, dict(model_type="exaone4", tie_word_embeddings=False, num_hidden_layers=4, sliding_window=5,
                           sliding_window_pattern="LLLG", layer_types=["sliding_attention"] * 3 + ["full_attention"],
                           rope_scaling=LLAMA3), {}),
    "hunyuan_v1_dense": (BOTH, dict(model_type="hunyuan_v1_dense", tie_word_embeddings=True, attention_bias=False,
                                    rope_scaling=dict(type="dynamic", alpha=100.0, factor=1.0)), {}),
    "ernie4_5": (BOTH, dict(model_type="ernie4_5", tie_word_embeddings=True, use_bias=False), {}),
    "gemma4_small_q4": (MLX, dict(GEMMA4_SMALL, hidden_size=64, intermediate_size=96, head_dim=16, global_head_dim=32,
                                  hidden_size_per_layer_input=32), dict(dtype=mx.bfloat16, bits=4)),
}


def drop_none(config):
    return {k: drop_none(v) if isinstance(v, dict) else v for k, v in config.items() if v is not None}


def mlx_model(config):
    from mlx_lm.utils import _get_classes
    model_class, args_class = _get_classes(config)
    return model_class(args_class.from_dict(json.loads(json.dumps(config))))


def shapes_of(model, config):
    """Names and shapes of an mlx-lm model's weights, or of a transformers one's."""
    if isinstance(model, nn.Module):
        return {name: value.shape for name, value in tree_flatten(model.parameters())}
    return {name: tuple(value.shape) for name, value in empty_hf_model(config).state_dict().items()}


def random_weights(model, config, dtype, seed, more):
    rng = np.random.default_rng(seed)
    weights = {}
    shapes = shapes_of(model, config)
    for name in [name for name in shapes if name.endswith("mlp.gate.weight")] if more else []:
        shapes.update({name.replace("mlp.gate.weight", tensor): shape for tensor, shape in more.items()})
    if config.get("tie_word_embeddings"):
        shapes.pop("lm_head.weight", None)
    for name, shape in shapes.items():
        data = rng.standard_normal(shape, dtype=np.float32)
        if "conv1d" in name:
            data *= 1.0 / np.sqrt(shape[1])
        elif name.endswith("correction_bias"):
            data *= 0.1
        elif len(shape) >= 2:
            data *= 1.0 / np.sqrt(shape[-1]) * (2.0 if "embed" in name or "lm_head" in name else 1.0)
        elif "norm" in name:
            offset = config["model_type"].startswith("gemma") and not config["model_type"].startswith("gemma4")
            data = (0.0 if offset else 1.0) + 0.2 * data
        elif name.endswith("layer_scalar"):
            data = 0.8 + 0.1 * data
        else:
            data *= 0.2
        # mlx-lm's dots.llm1 has another name for its stacks of experts.
        weights[re.sub(r"mlp\.experts\.(\w+\.weight)", r"mlp.switch_mlp.\1", name)] = mx.array(data).astype(dtype)
    if config.get("text_config"):
        weights = {k: v for k, v in weights.items() if "lm_head" not in k}
    return weights


class Recorder:
    """Stands for a layer and keeps what it was given and gave."""

    def __init__(self, layer):
        self.layer, self.seen, self.given = layer, None, None

    def __getattr__(self, name):
        return getattr(self.layer, name)

    def __call__(self, x, *args, **kwargs):
        self.seen, self.given = x, self.layer(x, *args, **kwargs)
        return self.given


def mlx_reference(model):
    model.set_dtype(mx.float32)
    body = getattr(model, "language_model", model).model
    body.layers = [Recorder(layer) for layer in body.layers]

    def run(ids):
        logits = model(mx.array([ids]))
        given = [layer.given for layer in body.layers]
        taps = [body.layers[0].seen] + [rows[0] if isinstance(rows, tuple) else rows for rows in given]
        return np.array(logits)[0], [np.array(tap)[0] for tap in taps]

    return run


def join_experts(weights):
    """The experts' stacked weights as transformers' modules hold them: gate and up joined."""
    result = dict(weights)
    for name in weights:
        if ".switch_mlp.gate_proj." in name:
            scope = name.partition("switch_mlp.")[0]
            gate, up, down = (result.pop(f"{scope}switch_mlp.{part}_proj.weight") for part in ("gate", "up", "down"))
            result[f"{scope}experts.gate_up_proj"] = mx.concatenate([gate, up], axis=1)
            result[f"{scope}experts.down_proj"] = down
    return result


def hf_names(weights, model_type):
    """Names inside transformers' modules, where checkpoints have others."""
    renames = {"granitemoe": [("router.layer.", "router.")], "mixtral": [("block_sparse_moe.", "mlp.")],
               "minimax_m2": [("block_sparse_moe.", "mlp.")], "ernie4_5_moe": [("moe_statics", "gate.moe_statics")]}
    result = {}
    for name, value in weights.items():
        for old, new in renames.get(model_type, []):
            name = name.replace(old, new)
        result[name] = value
    return result


def published(weights):
    """Qwen 3.5's weights as transformers stores them."""
    result = {}
    for name, value in weights.items():
        if name.endswith("conv1d.weight"):
            value = mx.moveaxis(value, 1, 2)
        elif "norm" in name and "linear_attn" not in name:
            value = value - 1.0
        result[name.replace("language_model.model.", "model.language_model.")] = value
    return result


def empty_hf_model(config):
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM
    text = dict(config.get("text_config", config))
    kind = CONFIG_MAPPING[text["model_type"]]
    # Some classes pad with a token beyond a small vocabulary.
    settings = kind(**json.loads(json.dumps({"pad_token_id": 0, **{k: v for k, v in text.items() if k != "model_type"}})))
    settings._attn_implementation = "eager"
    return AutoModelForCausalLM.from_config(settings, attn_implementation="eager").float().eval()


def hf_model(config, weights):
    import torch  # Only here: what mlx-lm runs needs no transformers.
    model = empty_hf_model(config)
    model_type = config.get("text_config", config)["model_type"]
    stored = hf_names(join_experts(weights), model_type)
    stored = published(stored) if model_type.startswith(("qwen3_5", "qwen3_next")) else stored
    state = {k.removeprefix("language_model.").replace("model.language_model.", "model."):
             torch.tensor(np.array(v.astype(mx.float32))) for k, v in stored.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    return model


def hf_reference(config, weights):
    import torch
    model = hf_model(config, weights)
    taps = {}
    for i, layer in enumerate(model.model.layers):
        layer.register_forward_hook(
            lambda module, args, output, i=i: taps.update({i: output[0] if isinstance(output, tuple) else output}))
    model.model.layers[0].register_forward_pre_hook(lambda module, args: taps.update({-1: args[0]}))

    def run(ids):
        with torch.no_grad():
            logits = model(torch.tensor([ids]), use_cache=False).logits[0].numpy()
        return logits, [taps[i][0].numpy() for i in range(-1, len(model.model.layers))]

    return run


def quantize(model, config, bits, wide):
    modules = {}

    def wanted(path, module):
        if not hasattr(module, "to_quantized"):
            return False
        if path.rsplit(".", 1)[-1] in wide.split():
            modules[path] = dict(group_size=32, bits=8)
            return modules[path]
        return True

    nn.quantize(model, 32, bits, class_predicate=wanted)
    config["quantization"] = dict(group_size=32, bits=bits, mode="affine", **modules)


def one_by_one(weights):
    """The experts' stacked weights under a name each, as transformers stores them."""
    result = {}
    for name, value in weights.items():
        if ".switch_mlp." not in name:
            result[name] = value
            continue
        for i in range(value.shape[0]):
            result[name.replace("switch_mlp", f"experts.{i}")] = value[i]
    return result


def stored_form(weights, options):
    """The weights as the checkpoint has them."""
    if options.get("one_by_one"):
        weights = one_by_one(weights)
    if options.get("fused"):
        weights = join_experts(weights)
    if options.get("published"):
        weights = published(weights)
    if options.get("turned"):
        weights = {k: mx.contiguous(v.swapaxes(1, 2)) if ".experts." in k else v for k, v in weights.items()}
    result = {}
    for name, value in weights.items():
        for old, new in options.get("names", []) if "experts." in name else []:
            name = name.replace(old, new)
        result[name] = value
    return result


def make_case(name, seed, reference=None):
    """A case and what its references give, or only the one that is named."""
    references, changes, options = CASES[name]
    reference = reference or references
    config = dict(changes) if "text_config" in changes else {**BASE, **changes}
    if isinstance(config.get("text_config"), dict):
        config["text_config"] = drop_none(config["text_config"])
    if config["model_type"] == "qwen2":  # Its heads always share the hidden size.
        config.pop("head_dim")
    config = drop_none(config)
    model = mlx_model(config) if config["model_type"] not in ONLY_HF else None
    weights = random_weights(model, config, options.get("dtype", mx.float32), seed, options.get("more"))
    if reference != HF or options.get("bits"):
        model.update(tree_unflatten(list(weights.items())))
        if options.get("bits"):
            quantize(model, config, options["bits"], options.get("wide", ""))
            weights = dict(tree_flatten(model.parameters()))
        if config["model_type"].startswith("gemma3"):  # A tied head, as real checkpoints have it.
            weights.pop("lm_head.weight", None)
            model.sanitize(dict(weights))
    elif config["model_type"].startswith("gemma3"):
        weights.pop("lm_head.weight", None)
    stored = stored_form(dict(weights), options)
    runs = []
    if reference in (MLX, BOTH):
        runs.append(mlx_reference(model))
    if reference in (HF, BOTH):
        runs.append(hf_reference(config, weights))
    run = runs[0]

    vocab = config["vocab_size"]
    ids = np.random.default_rng(seed + 1).integers(0, vocab, TOKENS).tolist()
    logits, taps = run(ids)
    for other in runs[1:]:
        difference = np.abs(other(ids)[0] - logits).max()
        assert difference < AGREE, f"{name}: references differ by {difference}"
    sequence, gap = ids[:PROMPT], np.inf
    for _ in range(GREEDY):
        row = run(sequence)[0][-1]
        best = np.sort(row)[-2:]
        gap = min(gap, best[1] - best[0])
        sequence.append(int(row.argmax()))
    golden = {"ids": mx.array(ids, mx.int32), "logits": mx.array(logits),
              "greedy": mx.array(sequence[PROMPT:], mx.int32)}
    golden.update({f"tap.{i - 1}": mx.array(tap) for i, tap in enumerate(taps)})
    return gap, config, stored, golden


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)}; default: all")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "tests/golden")
    args = parser.parse_args()
    for name in args.names or CASES:
        for seed in range(100):
            gap, config, weights, golden = make_case(name, seed)
            if gap > (MIN_GAP_HALF if "dtype" in CASES[name][2] else MIN_GAP):
                break
        else:
            raise SystemExit(f"{name}: no seed keeps greedy steps apart")
        out = args.out / name
        out.mkdir(parents=True, exist_ok=True)
        mx.save_safetensors(str(out / "model.safetensors"), weights, {"format": "mlx"})
        mx.save_safetensors(str(out / "golden.safetensors"), golden)
        (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        size = sum(f.stat().st_size for f in out.iterdir())
        print(f"{name}: {CASES[name][0]}, seed {seed}, gap {gap:.3f}, {size / 1e3:.0f} kB", flush=True)


if __name__ == "__main__":
    main()

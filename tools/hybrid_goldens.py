# SPDX-License-Identifier: Apache-2.0
"""Configurations of make_goldens.py with layers that keep no rows, and how their checkpoints store weights."""
import re

import mlx.core as mx

# With names and kernels of their own.
HYBRIDS = ("bailing_hybrid", "bailing_moe", "falcon_h1", "kimi_linear", "lfm2", "lfm2_moe", "granitemoehybrid", "nemotron_h")

BASE = dict(hidden_size=32, num_hidden_layers=2, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2,
            head_dim=8, vocab_size=96, rms_norm_eps=1e-6, max_position_embeddings=512, rope_theta=10000.0)
LFM2 = dict(BASE, rms_norm_eps=None, model_type="lfm2", tie_word_embeddings=True, num_hidden_layers=4, norm_eps=1e-5,
            conv_L_cache=3, block_dim=32, layer_types=["conv", "conv", "full_attention", "conv"], rope_theta=None,
            rope_parameters=dict(rope_theta=1e5, rope_type="default"),
            block_ff_dim=70, block_multiple_of=8, block_ffn_dim_multiplier=1.1, block_auto_adjust_ff_dim=True)
GRANITE_HYBRID = dict(BASE, model_type="granitemoehybrid", tie_word_embeddings=True, num_hidden_layers=4, embedding_multiplier=3.0,
                      attention_multiplier=0.3, residual_multiplier=0.5, logits_scaling=2.0, shared_intermediate_size=48,
                      num_local_experts=0, layer_types=["mamba", "attention", "mamba", "mamba"], mamba_n_heads=4, mamba_d_head=16,
                      mamba_d_state=12, mamba_n_groups=1, mamba_d_conv=4, mamba_expand=2, mamba_conv_bias=True,
                      mamba_proj_bias=False, attention_bias=False)
NEMOTRON_H = dict(BASE, rms_norm_eps=None, model_type="nemotron_h", tie_word_embeddings=False, num_hidden_layers=5,
                  hybrid_override_pattern="M*-M-", mamba_num_heads=8, mamba_head_dim=8, ssm_state_size=16, conv_kernel=4,
                  n_groups=2, layer_norm_epsilon=1e-5,
                  attention_bias=False, mamba_proj_bias=False, mlp_bias=False, use_bias=False, use_conv_bias=True,
                  time_step_limit=[0.0, float("inf")])
NEMOTRON_MOE = dict(n_routed_experts=8, num_experts_per_tok=3, moe_intermediate_size=20, n_shared_experts=1, n_group=2, topk_group=1,
                    moe_shared_expert_intermediate_size=28, norm_topk_prob=True, routed_scaling_factor=2.5)
LFM2_MOE = dict(BASE, rms_norm_eps=None, model_type="lfm2_moe", tie_word_embeddings=True, num_hidden_layers=4, norm_eps=1e-5,
                conv_L_cache=3, conv_bias=False, layer_types=["conv", "conv", "full_attention", "conv"], rope_theta=None,
                rope_parameters=dict(rope_theta=1e5, rope_type="default"), moe_intermediate_size=20, num_experts=5,
                num_experts_per_tok=2, num_dense_layers=1, norm_topk_prob=True, use_expert_bias=True, routed_scaling_factor=1.0)
FALCON_H1 = dict(BASE, model_type="falcon_h1", tie_word_embeddings=True, rms_norm_eps=1e-5, mamba_n_heads=4, mamba_d_head=16,
                 mamba_d_ssm=64, mamba_d_state=12, mamba_n_groups=2, mamba_d_conv=4, mamba_conv_bias=True, mamba_rms_norm=False,
                 mamba_norm_before_gate=False, mamba_proj_bias=False, projectors_bias=False, attention_bias=False, mlp_bias=False,
                 attention_in_multiplier=0.7, attention_out_multiplier=0.9, embedding_multiplier=3.0, key_multiplier=0.6,
                 lm_head_multiplier=0.8, mlp_multipliers=[0.9, 0.6], ssm_in_multiplier=1.25, ssm_out_multiplier=0.5,
                 ssm_multipliers=[0.4, 0.5, 0.6, 0.7, 0.8])
KIMI_LINEAR = dict(BASE, model_type="kimi_linear", tie_word_embeddings=False, num_hidden_layers=4, num_key_value_heads=4, rms_norm_eps=1e-6,
                   model_max_length=512, max_position_embeddings=None, q_lora_rank=None, kv_lora_rank=32, qk_nope_head_dim=16,
                   qk_rope_head_dim=8, v_head_dim=24, mla_use_nope=True, first_k_dense_replace=1, moe_layer_freq=1, num_experts=6,
                   num_experts_per_token=2, num_shared_experts=2, moe_intermediate_size=20, moe_router_activation_func="sigmoid",
                   moe_renormalize=True, num_expert_group=1, topk_group=1, routed_scaling_factor=2.446,
                   linear_attn_config=dict(kda_layers=[1, 2, 4], full_attn_layers=[3], num_heads=4, head_dim=10, short_conv_kernel_size=4))
BAILING_MOE = dict(BASE, model_type="bailing_moe", head_dim=None, tie_word_embeddings=False, num_hidden_layers=3, first_k_dense_replace=1,
                   num_experts=6, num_experts_per_tok=2, moe_intermediate_size=20, num_shared_experts=2, norm_topk_prob=True,
                   score_function="softmax")
BAILING_V2 = dict(BAILING_MOE, use_qk_norm=True, use_qkv_bias=True, partial_rotary_factor=0.5, score_function="sigmoid",
                  moe_router_enable_expert_bias=True, n_group=3, topk_group=2, routed_scaling_factor=2.5,
                  moe_shared_expert_intermediate_size=12)
BAILING_HYBRID = dict(BASE, model_type="bailing_hybrid", architectures=["BailingMoeV3ForCausalLM"], tie_word_embeddings=False,
                      num_hidden_layers=4, num_key_value_heads=4, head_dim=10, layer_group_size=2, q_lora_rank=24, kv_lora_rank=32,
                      qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=24, first_k_dense_replace=1, num_experts=6,
                      num_experts_per_tok=2, num_shared_experts=2, moe_intermediate_size=20, moe_shared_expert_intermediate_size=20,
                      n_group=3, topk_group=2, routed_scaling_factor=2.5, kda_lower_bound=-5.0, kda_safe_gate=True, no_kda_lora=True,
                      short_conv_kernel_size=4, rope_interleave=True, rope_theta=1e4)


def with_usual_stacks(weights):
    """Stacks of experts under the name that most models give them."""
    return {re.sub(r"\.(mlp|feed_forward)\.experts\.(\w+_proj\.weight)$", r".\1.switch_mlp.\2", k): v
            for k, v in weights.items()}


def join_experts(weights):
    """The experts' stacked weights as transformers' modules hold them: gate and up joined."""
    weights = with_usual_stacks(weights)
    result = dict(weights)
    for name in weights:
        for stack in ("switch_mlp.", "experts.switch_glu."):
            scope, found, _ = name.partition(f"{stack}gate_proj.")
            if found:
                gate, up, down = (result.pop(f"{scope}{stack}{part}_proj.weight") for part in ("gate", "up", "down"))
                result[f"{scope}experts.gate_up_proj"] = mx.concatenate([gate, up], axis=1)
                result[f"{scope}experts.down_proj"] = down
    return result


def joined_mlps(weights):
    """Granite's MLPs as its checkpoints have them."""
    result = dict(weights)
    for name in weights:
        if name.endswith(".mlp.gate_proj.weight"):
            layer = name.removesuffix("mlp.gate_proj.weight")
            gate, up, down = (result.pop(f"{layer}mlp.{part}_proj.weight") for part in ("gate", "up", "down"))
            result[f"{layer}shared_mlp.input_linear.weight"] = mx.concatenate([gate, up], axis=0)
            result[f"{layer}shared_mlp.output_linear.weight"] = down
    return result


def numbered_names(weights):
    """LFM2's MLPs as its checkpoints name them."""
    result = {}
    for name, value in weights.items():
        for usual, own in (("gate_proj", "w1"), ("up_proj", "w3"), ("down_proj", "w2")):
            name = name.replace(f"feed_forward.{usual}", f"feed_forward.{own}")
        result[name] = value
    return result


def stacked_experts(weights, kind):
    """Stacked experts as checkpoints of this type store them."""
    if kind == "granitemoehybrid":
        joined = {k.replace("experts.gate_up_proj", "input_linear.weight").replace("experts.down_proj", "output_linear.weight"): v
                  for k, v in join_experts(weights).items()}
        return joined
    names = {"fc1": "up_proj", "fc2": "down_proj"} if kind == "nemotron_h" else dict(gate_proj="w1", up_proj="w3", down_proj="w2")
    names = {part: part for part in names} if kind.startswith("bailing") else names
    result = {}
    for name, value in weights.items():
        scope, _, rest = name.partition("switch_mlp.")
        if not rest:
            result[name] = value
            continue
        module = rest.removesuffix(".weight")
        result.update({f"{scope}experts.{i}.{names[module]}.weight": value[i] for i in range(value.shape[0])})
    return result


def join_heads(weights):
    """The heads' own weights as transformers stores them: one tensor, the keys' part as it is multiplied."""
    result = dict(weights)
    for name in weights:
        if name.endswith(".embed_q.weight"):
            scope = name.removesuffix("embed_q.weight")
            keys, values = result.pop(name), result.pop(f"{scope}unembed_out.weight")
            both = mx.concatenate([mx.swapaxes(keys, 1, 2), values], axis=1)
            result[f"{scope}kv_b_proj.weight"] = both.reshape(-1, both.shape[-1])
    return result


def published_kimi(weights):
    """Kimi Linear's weights as its checkpoints name them."""
    sparse = {name.partition(".mlp.")[0] for name in weights if ".mlp.switch_mlp." in name}
    result = {}
    for name, value in join_heads(weights).items():
        if name.partition(".mlp.")[0] in sparse:
            name = name.replace(".mlp.e_score", ".mlp.gate.e_score").replace(".mlp.", ".block_sparse_moe.")
        result[name.replace("_conv.conv.", "_conv1d.")] = value
    return result


def kimi_modules(weights):
    """Weights of models with Kimi Delta Attention as transformers' modules hold them."""
    result, kernels = {}, {}
    for name, value in join_experts(weights).items():
        for old, new in ((".attention.", ".self_attn."), ("word_embeddings", "embed_tokens"), (".dense.", ".o_proj."),
                         ("mlp.gate.expert_bias", "mlp.gate.e_score_correction_bias")):
            name = name.replace(old, new)
        for part in ("f_a_proj", "f_b_proj", "f_proj", "A_log", "dt_bias"):
            name = name.replace(f"self_attn.{part}", f"self_attn.forget_gate.{part}")
        if "_conv.conv." in name or "_conv1d." in name:
            layer, _, part = name.partition("self_attn.")
            kernels.setdefault(f"{layer}self_attn.conv1d.weight", {})[part[0]] = mx.moveaxis(value, 1, 2)
        else:
            result[name.replace(".mlp.e_score", ".mlp.gate.e_score")] = value
    return result | {name: mx.concatenate([parts[part] for part in "qkv"]) for name, parts in kernels.items()}


def published_hybrid(weights, kind):
    """Weights of one of HYBRIDS as transformers stores them."""
    weights = published_kimi(weights) if kind == "kimi_linear" else weights
    if kind.startswith("bailing"):
        weights = {k.replace("gate.gate_proj", "gate"): v for k, v in join_heads(weights).items()}
    weights = joined_mlps(weights) if kind == "granitemoehybrid" else weights
    weights = numbered_names(weights) if kind == "lfm2_moe" else weights
    return {k: mx.moveaxis(v, 1, 2) if "conv" in k and v.ndim == 3 else v for k, v in stacked_experts(weights, kind).items()}

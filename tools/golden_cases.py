# SPDX-License-Identifier: Apache-2.0
"""The configurations of make_goldens.py, and which reference runs each."""
import mlx.core as mx
from hybrid_goldens import (
    BAILING_HYBRID, BAILING_MOE, BAILING_V2, BASE, FALCON_H1, GRANITE_HYBRID, KIMI_LINEAR, LFM2, LFM2_MOE, NEMOTRON_H, NEMOTRON_MOE)

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

DEEPSEEK_YARN = dict(YARN, original_max_position_embeddings=8, mscale=0.7, mscale_all_dim=1.0)
DEEPSEEK = dict(BASE, model_type="deepseek_v3", tie_word_embeddings=False, head_dim=None, num_key_value_heads=4,
                q_lora_rank=24, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=24, attention_bias=False,
                first_k_dense_replace=1, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=2,
                moe_intermediate_size=20, n_group=4, topk_group=2, routed_scaling_factor=2.5, norm_topk_prob=True,
                rope_scaling=DEEPSEEK_YARN)
QWEN3_NEXT = dict(BASE, **SHARED_MOE, model_type="qwen3_next", num_hidden_layers=3, full_attention_interval=3,
                  linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16, linear_value_head_dim=12,
                  linear_conv_kernel_dim=4, tie_word_embeddings=False, norm_topk_prob=True, decoder_sparse_step=1,
                  mlp_only_layers=[1], partial_rotary_factor=0.25, rope_theta=1e5)
MIXTRAL = dict(model_type="mixtral", num_local_experts=5, num_experts_per_tok=2, tie_word_embeddings=False)
GLM4_MOE = dict(model_type="glm4_moe", n_routed_experts=8, num_experts_per_tok=2, moe_intermediate_size=20,
                n_shared_experts=2, first_k_dense_replace=1, num_hidden_layers=3, n_group=4, topk_group=2,
                routed_scaling_factor=1.5, norm_topk_prob=True, use_qk_norm=True, attention_bias=True,
                tie_word_embeddings=False, partial_rotary_factor=0.5, rope_scaling=dict(rope_type="default"))

# A ramp whose borders are no whole dimensions; mlx-lm rounds them.
GPT_OSS = dict(BASE, model_type="gpt_oss", num_attention_heads=6, intermediate_size=24, num_local_experts=5,
               num_experts_per_tok=2, sliding_window=5, rms_norm_eps=1e-5, tie_word_embeddings=False, rope_theta=None,
               layer_types=["sliding_attention", "full_attention"],
               rope_parameters=dict(YARN, rope_theta=100.0, original_max_position_embeddings=64, truncate=False))

AFMOE = dict(BASE, model_type="afmoe", num_hidden_layers=4, sliding_window=5, layer_types=["sliding_attention"] * 3 + ["full_attention"],
             global_attn_every_n_layers=4, num_experts=6, num_experts_per_tok=2, num_shared_experts=2, num_dense_layers=1,
             moe_intermediate_size=20, route_norm=True, route_scale=2.5, score_func="sigmoid", n_group=1, topk_group=1,
             mup_enabled=True, tie_word_embeddings=False)
LAGUNA = dict(BASE, model_type="laguna", num_hidden_layers=4, num_attention_heads_per_layer=[4, 6, 4, 6], sliding_window=5,
              layer_types=["full_attention", "sliding_attention", "sliding_attention", "full_attention"], gating=True,
              mlp_layer_types=["dense", "sparse", "sparse", "sparse"], num_experts=6, num_experts_per_tok=2,
              moe_intermediate_size=20, shared_expert_intermediate_size=28, moe_routed_scaling_factor=2.5,
              moe_router_logit_softcapping=3.0, tie_word_embeddings=False, rope_theta=None, rope_parameters=dict(
                  full_attention=dict(YARN, rope_theta=1e4, partial_rotary_factor=0.5),
                  sliding_attention=dict(rope_type="default", rope_theta=1e3, partial_rotary_factor=1.0)))

LLAMA4 = dict(BASE, model_type="llama4_text", num_hidden_layers=4, attention_chunk_size=7, floor_scale=4, attn_scale=0.5,
              attn_temperature_tuning=True, use_qk_norm=True, num_local_experts=4, num_experts_per_tok=1, intermediate_size=20,
              intermediate_size_mlp=48, interleave_moe_layer_step=2, attention_bias=False, tie_word_embeddings=False,
              rope_scaling=LLAMA3)

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
    "afmoe": (BOTH, AFMOE, dict(one_by_one=True)),
    "afmoe_mlx": (MLX, dict(AFMOE, route_norm=False, score_func="softmax", mup_enabled=False), {}),
    "laguna": (BOTH, LAGUNA, dict(one_by_one=True, published=True)),
    "laguna_elements": (HF, dict(LAGUNA, gating="per-element"), dict(one_by_one=True, published=True)),
    "laguna_mlx": (MLX, dict(LAGUNA, moe_router_score_func="sqrtsoftplus"), {}),
    "apertus": (BOTH, dict(model_type="apertus", tie_word_embeddings=False, mlp_bias=False, attention_bias=False, post_norm=False,
                           qk_norm=True, hidden_act="xielu", rope_scaling=LLAMA3,
                           rope_parameters=dict(LLAMA3, rope_theta=1e4)), dict(published=True)),
    "llama4": (BOTH, dict(model_type="llama4", vocab_size=96, text_config=LLAMA4), dict(fused=True, turned=True)),
    # The sizes that llama.cpp has for all such models.
    "llama4_usual": (BOTH, dict(model_type="llama4", vocab_size=96, text_config=dict(
        LLAMA4, attention_chunk_size=8192, floor_scale=8192, attn_scale=0.1)), dict(fused=True, turned=True)),
    # mlx-lm has one expert of a token, and norms of heads with an epsilon of their own.
    "llama4_text": (HF, dict(LLAMA4, num_experts_per_tok=2, rms_norm_eps=1e-2, no_rope_layers=[1, 0, 1, 1]), {}),
    "mimo": (MLX, dict(model_type="mimo", tie_word_embeddings=False, num_nextn_predict_layers=1), {}),
    "falcon_h1": (HF, FALCON_H1, dict(published=True)),
    "falcon_h1_norm": (HF, dict(FALCON_H1, mamba_rms_norm=True, tie_word_embeddings=False), dict(published=True)),
    # mlx-lm leaves out the factor of keys, and one of values.
    "falcon_h1_mlx": (HF, FALCON_H1, dict(folded=True)),
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
    "gemma4_moe": (BOTH, dict(model_type="gemma4", vocab_size=96, text_config=dict(
        GEMMA4, num_hidden_layers=2, attention_k_eq_v=True, num_global_key_value_heads=1, enable_moe_block=True,
        num_experts=4, top_k_experts=2, moe_intermediate_size=20, layer_types=["sliding_attention", "full_attention"])), {}),
    "gemma4_moe_published": (BOTH, dict(model_type="gemma4", vocab_size=96, text_config=dict(
        GEMMA4, num_hidden_layers=2, attention_k_eq_v=False, enable_moe_block=True, num_experts=3, top_k_experts=2,
        moe_intermediate_size=12, layer_types=["sliding_attention", "full_attention"])), dict(published=True)),
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
    "deepseek_v2": (BOTH, dict(DEEPSEEK, model_type="deepseek_v2", q_lora_rank=None, topk_method="group_limited_greedy",
                               scoring_func="softmax", norm_topk_prob=False, aux_loss_alpha=0.0,
                               rope_scaling=dict(DEEPSEEK_YARN, mscale_all_dim=0.7)),
                    dict(one_by_one=True)),
    "deepseek_v3": (BOTH, DEEPSEEK, {}),
    "deepseek_v3_single": (BOTH, dict(DEEPSEEK, q_lora_rank=None, n_group=1, topk_group=1, n_shared_experts=1,
                                      moe_layer_freq=1, rope_scaling=None), dict(one_by_one=True, one_tensor=True)),
    "deepseek_v3_q4": (MLX, dict(DEEPSEEK, hidden_size=64, q_lora_rank=32, qk_nope_head_dim=32, v_head_dim=32, intermediate_size=96,
                                 n_routed_experts=3, n_group=1, topk_group=1, moe_intermediate_size=32, n_shared_experts=1),
                       dict(dtype=mx.bfloat16, bits=4)),
    "glm4_moe_lite": (MLX, dict(DEEPSEEK, model_type="glm4_moe_lite", n_group=1, topk_group=1, rope_scaling=None, rms_norm_eps=1e-2), {}),
    "mistral4": (BOTH, dict(DEEPSEEK, model_type="mistral4", rope_scaling=None, rope_theta=None, rope_parameters=dict(
        DEEPSEEK_YARN, rope_theta=1e4, type="yarn", llama_4_scaling_beta=0.5, partial_rotary_factor=1 / 3)), {}),
    "kimi_k25": (MLX, dict(model_type="kimi_k25", vocab_size=96, text_config=dict(DEEPSEEK, n_group=1, topk_group=1)), {}),
    # With another epsilon the two differ in the norm of latents.
    "kimi_linear": (BOTH, KIMI_LINEAR, dict(published=True)),
    "kimi_linear_mlx": (MLX, dict(KIMI_LINEAR, num_expert_group=3, topk_group=2, moe_renormalize=False, rms_norm_eps=1e-3), {}),
    "kimi_linear_q4": (MLX, dict(KIMI_LINEAR, hidden_size=64, intermediate_size=96, moe_intermediate_size=32, num_experts=3,
                                 num_experts_per_token=3, qk_nope_head_dim=32, v_head_dim=32, num_shared_experts=1, num_hidden_layers=2,
                                 linear_attn_config=dict(kda_layers=[1], full_attn_layers=[2], num_heads=2, head_dim=32,
                                                         short_conv_kernel_size=4)),
                       dict(dtype=mx.bfloat16, bits=4)),
    "bailing_moe": (MLX, BAILING_MOE, dict(published=True)),
    "bailing_moe_v2": (MLX, BAILING_V2, dict(published=True)),
    "bailing_moe_v2_mlx": (MLX, dict(BAILING_V2, n_group=1, topk_group=1, rotary_dim=6), {}),
    "bailing_hybrid": (BOTH, BAILING_HYBRID, dict(published=True)),
    "bailing_hybrid_mlx": (MLX, dict(BAILING_HYBRID, q_lora_rank=None, num_hidden_layers=5, rms_norm_eps=1e-3,
                                     kda_lower_bound=-2.0), {}),
    "lfm2": (BOTH, dict(LFM2, conv_bias=False), dict(published=True)),
    "lfm2_bias": (BOTH, dict(LFM2, conv_bias=True, conv_L_cache=4), {}),
    # With more groups the two differ in which heads share one.
    "granitemoehybrid": (BOTH, dict(GRANITE_HYBRID, position_embedding_type="nope"), dict(published=True)),
    # mlx-lm has limits of steps of its own.
    "granitemoehybrid_mlx": (HF, dict(GRANITE_HYBRID, position_embedding_type="rope", time_step_limit=[0.5, 0.8]), {}),
    # transformers keeps steps above `time_step_min`, whatever their limits are.
    "nemotron_h": (MLX, NEMOTRON_H, dict(published=True)),
    "nemotron_h_moe": (MLX, dict(NEMOTRON_H, num_hidden_layers=4, hybrid_override_pattern="M*EM", **NEMOTRON_MOE), dict(published=True)),
    "nemotron_h_latent": (MLX, dict(NEMOTRON_H, num_hidden_layers=4, hybrid_override_pattern="EM*-", moe_latent_size=20,
                                    **NEMOTRON_MOE), {}),
    "lfm2_moe": (BOTH, LFM2_MOE, dict(published=True)),
    "lfm2_moe_mlx": (MLX, dict(LFM2_MOE, norm_topk_prob=False), {}),
    "granitemoehybrid_moe": (MLX, dict(GRANITE_HYBRID, position_embedding_type="nope", num_local_experts=5, num_experts_per_tok=2,
                                        intermediate_size=20), dict(published=True)),
    "granitemoehybrid_moe_mlx": (MLX, dict(GRANITE_HYBRID, position_embedding_type="nope", num_local_experts=5,
                                           num_experts_per_tok=2, intermediate_size=20), {}),
    "gpt_oss": (HF, GPT_OSS, {}),
    "gpt_oss_published": (HF, GPT_OSS, dict(published=True)),
    "gpt_oss_mxfp4": (HF, dict(GPT_OSS, intermediate_size=96, num_local_experts=3), dict(published=True, mxfp4=True)),
    "gemma4_small_q4": (MLX, dict(GEMMA4_SMALL, hidden_size=64, intermediate_size=96, head_dim=16, global_head_dim=32,
                                  hidden_size_per_layer_input=32), dict(dtype=mx.bfloat16, bits=4)),
}

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checkpoints of tests/golden that are whole models.

namespace saker::load {

// clang-format off
inline constexpr const char* kGoldenModels[] = {
    "bailing_hybrid", "bailing_hybrid_mlx", "bailing_moe", "bailing_moe_v2", "bailing_moe_v2_mlx",
    "deepseek_v2", "deepseek_v3", "deepseek_v3_single", "deepseek_v3_q4", "glm4_moe_lite",
    "kimi_k25", "kimi_linear", "kimi_linear_mlx", "gemma", "gemma2", "gemma3", "gemma3_nested", "gemma4", "gemma4_small",
    "gemma4_small_q4", "llama", "llama_bias", "mistral", "mtp/deepseek_v3", "mtp/glm4_moe", "mtp/qwen3", "mtp/qwen3_5", "qwen2",
    "qwen3", "qwen3_5", "qwen3_5_published", "qwen3_mixed", "qwen3_moe", "qwen3_moe_q4",
    "qwen3_moe_single", "lfm2", "granitemoehybrid", "granitemoehybrid_mlx", "nemotron_h",
    "dots1", "ernie4_5_moe", "glm4_moe", "granitemoe", "minimax_m2", "mixtral", "qwen2_moe",
    "qwen3_5_moe", "cohere2_moe", "qwen3_next", "qwen3_vl_moe", "qwen3_5_moe_published",
    "olmoe", "qwen3_next_published", "mtp/qwen3_5_moe", "gemma4_moe", "gemma4_moe_published",
    "gpt_oss", "gpt_oss_mxfp4", "gpt_oss_published", "afmoe", "apertus", "falcon_h1",
    "falcon_h1_mlx", "laguna", "laguna_mlx", "llama4", "mimo",
};
// clang-format on

}  // namespace saker::load

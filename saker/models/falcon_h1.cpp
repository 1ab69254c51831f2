// SPDX-License-Identifier: Apache-2.0
// Falcon H1: in each layer attention and Mamba-2 read the same rows. Factors scale what they read and
// give, keys, the parts of Mamba-2's input, the MLP's gate and output, embeddings and logits. MLX's
// models have most of them in their weights.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/mamba2_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace saker::models {
namespace {

float read_factor(const Json& json, std::string_view key) {
  const double value = json_has(json, key) ? json_double(json, key, 1.0) : 1.0;
  require(
      std::isfinite(value) && std::abs(value) < 1e6,
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected a number",
      key,
      value
  );
  return static_cast<float>(value);
}

template <std::size_t Count>
std::array<float, Count> read_factors(const Json& json, std::string_view key) {
  std::array<float, Count> factors;
  factors.fill(1.0F);
  if (!json_has(json, key)) {
    return factors;
  }
  const Json& list = *json.find(key);
  const auto is_factor = [](const Json& value) {
    return value.is_number() && std::abs(value.get<double>()) < 1e6;
  };
  require(
      list.is_array() && list.size() == Count && std::ranges::all_of(list, is_factor),
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected {} numbers",
      key,
      describe_json(list),
      Count
  );
  std::ranges::transform(list, factors.begin(), [](const Json& value) {
    return value.get<float>();
  });
  return factors;
}

nn::Mamba2Options read_mamba(const Json& json, const DecoderConfig& config) {
  const auto heads = read_size(json, "mamba_n_heads", 128, 1 << 12);
  const auto expand = read_size(json, "mamba_expand", 2, 1 << 10);
  const bool given = json_has(json, "mamba_d_ssm") || !json.contains("mamba_d_ssm");
  const auto width = given ? read_size(json, "mamba_d_ssm", 1024, 1 << 24) : expand * config.hidden;
  auto options = read_mamba2(
      without_auto_head_dim(json, "mamba_d_head"),
      config,
      {.heads = "mamba_n_heads",
       .head_dim = "mamba_d_head",
       .state_dim = "mamba_d_state",
       .groups = "mamba_n_groups",
       .taps = "mamba_d_conv",
       .default_heads = 128,
       .default_head_dim = std::max<std::int64_t>(width / heads, 1),
       .default_state_dim = 256}
  );
  require(
      options.shape.outputs() == width,
      ErrorCode::kCorruptData,
      "[config] mamba_n_heads {} times mamba_d_head {} is not mamba_d_ssm {}",
      options.shape.heads,
      options.shape.head_dim,
      width
  );
  options.norm_groups = json_bool(json, "mamba_rms_norm", false) ? options.shape.groups : 0;
  options.norm_before_gate = json_bool(json, "mamba_norm_before_gate", true);
  options.input_scales = read_factors<5>(json, "ssm_multipliers");
  return options;
}

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(
      json, {.context_length = 8192, .rope = {.default_theta = 1e11}, .norm_eps = 1e-5}
  );
  config.feed_forward = "feed_forward";
  config.names.norms = {"input_layernorm", "pre_ff_layernorm"};
  config.names.final_norm = "final_layernorm";
  for (LayerConfig& layer : config.layers) {
    layer.mixing = TokenMixing::kMamba2;
    layer.beside = TokenMixing::kAttention;
  }
  config.mamba2 = read_mamba(json, config);
  const auto factor = [&](std::string_view key) { return read_factor(json, key); };
  config.embedding_scale = factor("embedding_multiplier");
  config.logit_scale = factor("lm_head_multiplier");
  config.attention_scale *= factor("key_multiplier");
  config.attention_scales = {factor("attention_in_multiplier"), factor("attention_out_multiplier")};
  config.mamba2_scales = {factor("ssm_in_multiplier"), factor("ssm_out_multiplier")};
  const auto mlp = read_factors<2>(json, "mlp_multipliers");
  config.mlp_scales = {mlp[0], mlp[1]};
  return config;
}

// MLX's models: keys lack their factor, and values that of what attention reads.
void adjust(DecoderConfig& config, const nn::Weights& body) {
  const auto kernel = (body / "layers" / "0" / "mamba" / "conv1d").find("weight");
  if (!kernel || is_published_kernel(kernel->shape)) {
    return;
  }
  config.logit_scale =
      config.head == HeadChoice::kTied ? config.logit_scale / config.embedding_scale : 1.0F;
  config.embedding_scale = 1.0F;
  config.attention_scales = {1.0F, config.attention_scales.input};
  config.mamba2_scales = {};
  config.mlp_scales = {};
  config.mamba2.input_scales.fill(1.0F);
}

// As mlx-lm multiplies them; see adjust().
RowFactors row_factors(std::string_view name, const Json& json) {
  const auto has_end = [&](std::string_view end) { return name.ends_with(end); };
  const auto factor = [&](std::string_view key) {
    return RowFactors{.all = read_factor(json, key)};
  };
  if (has_end("embed_tokens.weight")) {
    return factor("embedding_multiplier");
  }
  if (has_end("lm_head.weight")) {
    return factor("lm_head_multiplier");
  }
  if (has_end("q_proj.weight") || has_end("k_proj.weight")) {
    return factor("attention_in_multiplier");
  }
  if (has_end("o_proj.weight")) {
    return factor("attention_out_multiplier");
  }
  if (has_end("out_proj.weight")) {
    return factor("ssm_out_multiplier");
  }
  const auto mlp = read_factors<2>(json, "mlp_multipliers");
  if (has_end("gate_proj.weight") || has_end("down_proj.weight")) {
    return {.all = mlp[has_end("down_proj.weight") ? 1 : 0]};
  }
  if (!has_end("in_proj.weight")) {
    return {};
  }
  RowFactors result = factor("ssm_in_multiplier");
  const auto options = read(json).mamba2;
  const auto counts = options.input_counts();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    result.rows.insert(
        result.rows.end(), static_cast<std::size_t>(counts[i]), options.input_scales[i]
    );
  }
  return result;
}

bool is_kernel(std::string_view name) {
  return name.ends_with(".mamba.conv1d.weight");
}

using Kernels = KernelRules<is_kernel>;

}  // namespace

Architecture falcon_h1() {
  return {
      .read = read,
      .build_layer = pre_norm_layer,
      .adjust = adjust,
      .tensors =
          {.needs_sanitizing = Kernels::needs_sanitizing,
           .sanitized = Kernels::sanitized,
           .row_factors = row_factors},
  };
}

}  // namespace saker::models

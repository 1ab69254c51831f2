// SPDX-License-Identifier: Apache-2.0
// Qwen 3.5, text, and Qwen 3 Next. Three layers of linear attention (gated delta net) per layer of
// full attention, whose output is gated and whose heads rotate in their first quarter. With experts,
// a mixture takes the MLP's place, beside an expert that all tokens share behind a gate. Checkpoints
// for images have the text part in `text_config`. Published checkpoints store norm weights minus
// one; MLX's converted ones store them whole and transpose the convolution's kernel.
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace saker::models {
namespace {

constexpr int kMaxHeads = 1 << 12;
constexpr int kMaxDim = 1 << 12;
constexpr std::int64_t kMaxMemory = 1 << 24;  // Numbers in a layer's state.

bool is_linear(const Json& json, int layer) {
  return (layer + 1) % read_size(json, "full_attention_interval", 4, 1 << 20) != 0;
}

nn::GatedDeltaOptions read_delta(const Json& json, const DecoderConfig& config) {
  const auto size = [&](std::string_view key, int high) {
    return static_cast<int>(read_size(json, key, 0, high));
  };
  nn::GatedDeltaOptions options{.hidden = config.hidden, .shape = {}, .norm = config.norm};
  options.shape = {
      .key_heads = size("linear_num_key_heads", kMaxHeads),
      .value_heads = size("linear_num_value_heads", kMaxHeads),
      .key_dim = size("linear_key_head_dim", kMaxDim),
      .value_dim = size("linear_value_head_dim", kMaxDim),
      .taps =
          static_cast<int>(read_size(json, "linear_conv_kernel_dim", 4, kernels::kMaxDeltaTaps)),
  };
  require(
      options.shape.value_heads % options.shape.key_heads == 0,
      ErrorCode::kCorruptData,
      "[config] linear_num_value_heads is {}, expected a multiple of linear_num_key_heads {}",
      options.shape.value_heads,
      options.shape.key_heads
  );
  const kernels::DeltaShape& shape = options.shape;
  const auto memory = std::int64_t{shape.value_heads} * shape.key_dim * shape.value_dim;
  require(
      memory <= kMaxMemory,
      ErrorCode::kUnsupported,
      "[config] linear_num_value_heads {} times linear_key_head_dim {} times linear_value_head_dim "
      "{} "
      "is above {}",
      shape.value_heads,
      shape.key_dim,
      shape.value_dim,
      kMaxMemory
  );
  return options;
}

DecoderConfig read_layers(const Json& json, const ConfigDefaults& defaults) {
  auto config = read_decoder_config(json, defaults);
  config.head_norms = true;
  config.attention_gate = json_bool(json, "attn_output_gate", true);
  config.delta = read_delta(json, config);
  const int layers = static_cast<int>(config.layers.size());
  const auto linear = read_typed_layers(json, layers, "linear_attention", is_linear);
  for (std::size_t i = 0; i < linear.size(); ++i) {
    config.layers[i].mixing = linear[i] ? TokenMixing::kGatedDelta : TokenMixing::kAttention;
  }
  return config;
}

DecoderConfig read(const Json& whole) {
  return read_layers(
      text_config(whole, "qwen3_5"),
      {.head_dim = 256, .rope = {.default_theta = 1e7, .default_part = 0.25}}
  );
}

void add_experts(DecoderConfig& config, const Json& json, const MoeFields& fields) {
  config.moe = read_moe(json, config, fields);
  config.moe.routing.score = kernels::RouterScore::kSoftmaxOfChosen;
  config.moe.shared = {
      .intermediate = read_optional_width(json, {"shared_expert_intermediate_size", 512}),
      .name = "shared_expert",
      .gate = "shared_expert_gate",
  };
}

DecoderConfig read_moe_layers(const Json& whole) {
  const auto json = text_config(whole, "qwen3_5_moe");
  auto config = read_layers(
      json,
      {.kv_heads = 2,
       .head_dim = 256,
       .intermediate = 512,
       .rope = {.default_theta = 1e7, .default_part = 0.25}}
  );
  add_experts(
      config,
      json,
      {.experts = {"num_experts", 256},
       .chosen = {"num_experts_per_tok", 8},
       .width = {"moe_intermediate_size", 512}}
  );
  for (LayerConfig& layer : config.layers) {
    layer.experts = true;
  }
  return config;
}

DecoderConfig read_next(const Json& json) {
  auto config = read_layers(json, {.kv_heads = 2, .head_dim = 256, .rope = {.default_part = 0.25}});
  add_experts(
      config,
      json,
      {.experts = {"num_experts", 512},
       .chosen = {"num_experts_per_tok", 10},
       .width = {"moe_intermediate_size", 512}}
  );
  config.moe.routing.score = read_softmax(json, "norm_topk_prob", true);
  set_sparse_layers(config, json);
  return config;
}

// True for a convolution's kernel as it is published, [C, 1, taps]. Then norm weights are stored
// minus one.
bool is_published(const Tensor& kernel) {
  return !kernel.shape.empty() && kernel.shape.back() != 1;
}

void adjust(DecoderConfig& config, const nn::Weights& body) {
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const auto kernel =
        (body / "layers" / fmt::to_string(i) / "linear_attn" / "conv1d").find("weight");
    if (kernel && is_published(*kernel)) {
      config.norm.weight_offset = 1.0F;
      return;
    }
  }
}

bool is_kernel(std::string_view name) {
  return name.ends_with("linear_attn.conv1d.weight");
}

bool needs_sanitizing(const TensorMap& tensors) {
  return std::ranges::any_of(tensors, [](const auto& entry) {
    return is_kernel(entry.first) && is_published(entry.second);
  });
}

// Norms of heads and of rows; the norm of linear attention's outputs is published unchanged.
bool is_norm_minus_one(std::string_view name) {
  constexpr std::array<std::string_view, 5> kEnds{
      ".input_layernorm.weight",
      ".post_attention_layernorm.weight",
      "model.norm.weight",
      ".q_norm.weight",
      ".k_norm.weight",
  };
  const bool of_mtp = name.starts_with("mtp.") || name.find(".mtp.") != std::string_view::npos;
  return std::ranges::any_of(kEnds, [&](std::string_view end) { return name.ends_with(end); }) ||
         (of_mtp && (name.find(".pre_fc_norm_") != std::string_view::npos ||
                     name.ends_with("mtp.norm.weight")));
}

SanitizedTensor sanitized(std::string_view name, std::vector<std::int64_t> shape) {
  SanitizedTensor result{.shape = std::move(shape)};
  if (is_kernel(name) && result.shape.size() == 3 && result.shape[1] == 1) {
    std::swap(result.shape[1], result.shape[2]);  // [C, taps, 1] has the same bytes.
  } else if (is_norm_minus_one(name) && result.shape.size() == 1) {
    result.offset = 1.0F;
  }
  return result;
}

// mlx-lm has no separate text model for this architecture.
std::string_view mlx_scope(const Json& config) {
  const auto model_type = json_string(config, "model_type", "");
  return model_type == "qwen3_5" || model_type == "qwen3_5_moe" ? "language_model." : "";
}

}  // namespace

Architecture qwen3_5() {
  return {
      .read = read,
      .build_layer = pre_norm_layer,
      .adjust = adjust,
      .has_mtp_heads = true,
      .tensors =
          {.mlx_scope = mlx_scope,
           .needs_sanitizing = needs_sanitizing,
           .sanitized = sanitized,
           .keeps_dtype = [](std::string_view name) { return name.ends_with("A_log"); }},
  };
}

Architecture qwen3_5_moe() {
  Architecture result = qwen3_5();
  result.read = read_moe_layers;
  result.tensors.own_format = gates_of_eight_bits;
  return result;
}

Architecture qwen3_next() {
  Architecture result = qwen3_5();
  result.read = read_next;
  result.tensors.keeps_dtype = TensorRules().keeps_dtype;
  result.tensors.own_format = gates_of_eight_bits;
  return result;
}

}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
// Qwen 3.5, dense, text. Three layers of linear attention (gated delta net) per layer of full
// attention, whose output is gated and whose heads rotate in their first quarter. Checkpoints for
// images have the text part in `text_config`. Published checkpoints store norm weights minus one;
// MLX's converted ones store them whole and transpose the convolution's kernel.
#include "saker/base/error.h"
#include "saker/models/architecture.h"

#include <fmt/format.h>

#include <cstdint>

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

DecoderConfig read(const Json& whole) {
  const auto json = text_config(whole, "qwen3_5");
  auto config = read_decoder_config(
      json, {.head_dim = 256, .rope = {.default_theta = 1e7, .default_part = 0.25}}
  );
  config.head_norms = true;
  config.attention_gate = json_bool(json, "attn_output_gate", true);
  config.delta = read_delta(json, config);
  const int layers = static_cast<int>(config.layers.size());
  const auto linear = read_typed_layers(json, layers, "linear_attention", is_linear);
  for (std::size_t i = 0; i < linear.size(); ++i) {
    config.layers[i].linear = linear[i];
  }
  return config;
}

// Norm weights are stored minus one if the convolution's kernel is as published, [C, 1, taps].
void adjust(DecoderConfig& config, const nn::Weights& body) {
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const auto kernel =
        (body / "layers" / fmt::to_string(i) / "linear_attn" / "conv1d").find("weight");
    if (kernel && !kernel->shape.empty() && kernel->shape.back() != 1) {
      config.norm.weight_offset = 1.0F;
      return;
    }
  }
}

}  // namespace

Architecture qwen3_5() {
  return {.read = read, .build_layer = pre_norm_layer, .adjust = adjust, .has_mtp_heads = true};
}

}  // namespace saker::models

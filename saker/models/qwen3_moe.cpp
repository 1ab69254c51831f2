// SPDX-License-Identifier: Apache-2.0
// Qwen 3 with experts: Qwen 3's layers. Every `decoder_sparse_step`-th one has a mixture of experts
// for its MLP, except those in `mlp_only_layers`. With `use_sliding_window` all layers slide.
#include "saker/base/error.h"
#include "saker/models/architecture.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace saker::models {
namespace {

constexpr std::int64_t kMaxExperts = 1 << 14;

std::int64_t int_in(
    const Json& json, std::string_view key, std::int64_t fallback, std::int64_t high
) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? fallback : json_int_in(json, key, 1, high);
}

// Transformers has a second name for the number of experts.
int read_experts(const Json& json) {
  const bool second = !json.contains("num_experts") && json.contains("num_local_experts");
  const auto* key = second ? "num_local_experts" : "num_experts";
  return static_cast<int>(int_in(json, key, 128, kMaxExperts));
}

nn::MoeOptions read_moe(const Json& json, const DecoderConfig& config) {
  nn::MoeOptions options;
  options.hidden = config.hidden;
  options.intermediate = static_cast<int>(int_in(json, "moe_intermediate_size", 768, 1 << 24));
  options.experts = read_experts(json);
  const auto chosen = int_in(json, "num_experts_per_tok", 8, kMaxExperts);
  require(
      chosen <= options.experts,
      ErrorCode::kCorruptData,
      "[config] num_experts_per_tok is {}, expected at most num_experts {}",
      chosen,
      options.experts
  );
  options.routing.chosen = static_cast<int>(chosen);
  options.routing.score = json_bool(json, "norm_topk_prob", false)
                              ? kernels::RouterScore::kSoftmaxOfChosen
                              : kernels::RouterScore::kSoftmax;
  options.activation = config.activation;
  return options;
}

// Indices of the layers without experts.
std::vector<std::int64_t> read_mlp_only_layers(const Json& json) {
  std::vector<std::int64_t> layers;
  const auto found = json.find("mlp_only_layers");
  if (found == json.end() || found->is_null()) {
    return layers;
  }
  require(
      found->is_array(),
      ErrorCode::kCorruptData,
      "[config] mlp_only_layers is {}, expected an array",
      describe_json(*found)
  );
  for (const auto& value : *found) {
    require(
        value.is_number_integer(),
        ErrorCode::kCorruptData,
        "[config] mlp_only_layers has {}, expected layer indices",
        describe_json(value)
    );
    layers.push_back(value.get<std::int64_t>());
  }
  return layers;
}

DecoderConfig read(const Json& json) {
  auto config = read_decoder_config(json, {.kv_heads = 4});
  config.head_norms = true;
  config.moe = read_moe(json, config);
  const auto step = int_in(json, "decoder_sparse_step", 1, std::int64_t{1} << 31);
  const auto dense = read_mlp_only_layers(json);
  const bool slides = json_bool(json, "use_sliding_window", false);
  const int window = slides ? read_window(json, 4096) : 0;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    config.layers[i].experts =
        (index + 1) % step == 0 && std::ranges::find(dense, index) == dense.end();
    config.layers[i].window = window;
  }
  return config;
}

// Routers choose, so they keep 8 bits.
std::optional<kernels::WeightFormat> own_format(std::string_view module) {
  constexpr kernels::WeightFormat kRouter{
      .kind = kernels::WeightKind::kAffine, .bits = 8, .group_size = 64
  };
  return module.ends_with("mlp.gate") ? std::optional(kRouter) : std::nullopt;
}

}  // namespace

Architecture qwen3_moe() {
  return {.read = read, .build_layer = pre_norm_layer, .tensors = {.own_format = own_format}};
}

}  // namespace saker::models

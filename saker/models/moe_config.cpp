// SPDX-License-Identifier: Apache-2.0
#include "saker/models/moe_config.h"

#include "saker/base/error.h"
#include "saker/base/numbered_name.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace saker::models {
namespace {

constexpr std::int64_t kMaxExperts = 1 << 14;
constexpr std::int64_t kMaxWidth = 1 << 24;

// As json_int_in from 1 on; a missing field and null have the fallback.
int size_in(const Json& json, const SizeField& field, std::int64_t high) {
  const bool given = field.fallback == 0 || json_has(json, field.key);
  return static_cast<int>(given ? json_int_in(json, field.key, 1, high) : field.fallback);
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

}  // namespace

nn::MoeOptions read_moe(const Json& json, const DecoderConfig& config, const MoeFields& fields) {
  nn::MoeOptions options;
  options.hidden = config.hidden;
  options.intermediate = size_in(json, fields.width, kMaxWidth);
  options.experts = size_in(json, fields.experts, kMaxExperts);
  options.routing.chosen = size_in(json, fields.chosen, kMaxExperts);
  require(
      options.routing.chosen <= options.experts,
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected at most {} {}",
      fields.chosen.key,
      options.routing.chosen,
      fields.experts.key,
      options.experts
  );
  options.activation = config.activation;
  return options;
}

kernels::RouterScore read_softmax(const Json& json, std::string_view key, bool fallback) {
  return json_bool(json, key, fallback) ? kernels::RouterScore::kSoftmaxOfChosen
                                        : kernels::RouterScore::kSoftmax;
}

void read_grouped_sigmoid(const Json& json, nn::MoeOptions& moe, const GroupedFields& fields) {
  kernels::RouterOptions& routing = moe.routing;
  routing.score = kernels::RouterScore::kSigmoid;
  routing.normalized = json_bool(json, fields.normalized, true);
  routing.epsilon = 1e-20F;
  routing.scale = static_cast<float>(read_positive(json, "routed_scaling_factor", 1.0));
  routing.group_score = kernels::GroupScore::kLargestTwo;
  routing.groups = size_in(json, fields.groups, kMaxExperts);
  routing.kept_groups = size_in(json, {"topk_group", 1}, kMaxExperts);
  require(
      moe.experts % routing.groups == 0,
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected a divisor of {} experts",
      fields.groups.key,
      routing.groups,
      moe.experts
  );
  require(
      routing.kept_groups <= routing.groups,
      ErrorCode::kCorruptData,
      "[config] topk_group is {}, expected at most {} {}",
      routing.kept_groups,
      fields.groups.key,
      routing.groups
  );
  require(
      routing.chosen <= moe.experts / routing.groups * routing.kept_groups,
      ErrorCode::kCorruptData,
      "[config] topk_group {} of {} {} leaves fewer experts than the {} of each token",
      routing.kept_groups,
      fields.groups.key,
      routing.groups,
      routing.chosen
  );
}

std::int64_t read_count(const Json& json, const SizeField& field, std::int64_t high) {
  return json_has(json, field.key) ? json_int_in(json, field.key, 0, high) : field.fallback;
}

int read_shared_width(const Json& json, const SizeField& count, const nn::MoeOptions& moe) {
  const std::int64_t width = read_count(json, count, kMaxExperts) * moe.intermediate;
  require(
      width <= kMaxWidth,
      ErrorCode::kCorruptData,
      "[config] {} makes a shared expert of {}, expected at most {}",
      count.key,
      width,
      kMaxWidth
  );
  return static_cast<int>(width);
}

int read_optional_width(const Json& json, const SizeField& field) {
  return static_cast<int>(read_count(json, field, kMaxWidth));
}

std::optional<std::vector<bool>> read_sparse_types(const Json& json, std::size_t layer_count) {
  const auto types = json.find("mlp_layer_types");
  if (types == json.end() || types->is_null()) {
    return std::nullopt;
  }
  require(
      types->is_array() && types->size() == layer_count,
      ErrorCode::kCorruptData,
      "[config] mlp_layer_types has {} entries, expected an array of num_hidden_layers {}",
      types->size(),
      layer_count
  );
  std::vector<bool> sparse;
  for (const Json& type : *types) {
    require(
        type == "sparse" || type == "dense",
        ErrorCode::kUnsupported,
        "[config] mlp_layer_types has {}, expected \"dense\" or \"sparse\"",
        describe_json(type)
    );
    sparse.push_back(type == "sparse");
  }
  return sparse;
}

void set_sparse_layers(DecoderConfig& config, const Json& json) {
  const std::int64_t step = size_in(json, {"decoder_sparse_step", 1}, (std::int64_t{1} << 31) - 1);
  const auto dense = read_mlp_only_layers(json);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    config.layers[i].experts =
        (index + 1) % step == 0 && std::ranges::find(dense, index) == dense.end();
  }
}

void set_sparse_layers_by_type(DecoderConfig& config, const Json& json) {
  const std::size_t count = config.layers.size();
  if (!json_has(json, "mlp_layer_types")) {
    const auto dense = read_count(json, {"first_k_dense_replace", 0}, INT32_MAX);
    const auto step = read_size(json, "moe_layer_freq", 1, INT32_MAX);
    for (std::int64_t i = 0; std::cmp_less(i, count); ++i) {
      config.layers[static_cast<std::size_t>(i)].experts = i >= dense && i % step == 0;
    }
    return;
  }
  const Json& types = *json.find("mlp_layer_types");
  require(
      types.is_array() && types.size() == count,
      ErrorCode::kCorruptData,
      "[config] mlp_layer_types is {}, expected an array of num_hidden_layers {}",
      describe_json(types),
      count
  );
  std::size_t layer = 0;
  for (const Json& type : types) {
    require(
        type == "dense" || type == "sparse",
        ErrorCode::kUnsupported,
        "[config] mlp_layer_types has {}, expected \"dense\" or \"sparse\"",
        describe_json(type)
    );
    config.layers[layer++].experts = type == "sparse";
  }
}

void set_layers_after(DecoderConfig& config, const Json& json, const SizeField& field) {
  constexpr std::int64_t kMostDense = 1 << 20;
  const std::int64_t dense = read_count(json, field, kMostDense);
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    config.layers[i].experts = static_cast<std::int64_t>(i) >= dense;
  }
}

std::optional<kernels::WeightFormat> gates_of_eight_bits(std::string_view module) {
  return module.ends_with("mlp.gate") || module.ends_with("shared_expert_gate")
             ? std::optional(kEightBits)
             : std::nullopt;
}

bool is_behind_layers(std::string_view name, const Json& config) {
  constexpr std::string_view kLayers = "layers.";
  const auto at = name.find(kLayers);
  if (at != 0 && (at == std::string_view::npos || name[at - 1] != '.')) {
    return false;
  }
  const auto layer = numbered_name(name.substr(at), kLayers);
  const auto text = config.find("text_config");
  const Json& own = text != config.end() && text->is_object() ? *text : config;
  const auto count = own.find("num_hidden_layers");
  return layer && count != own.end() && count->is_number_integer() &&
         layer->number >= count->get<std::int64_t>();
}

bool is_choice_bias(std::string_view name) {
  return name.ends_with("e_score_correction_bias") || name.ends_with("expert_bias");
}

}  // namespace saker::models

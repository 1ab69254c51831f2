// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fields of mixtures of experts in configurations, read and checked. Errors name the field and its
// value.

#include "saker/base/json/json.h"
#include "saker/kernels/layout/weight_format.h"
#include "saker/models/decoder_config.h"
#include "saker/nn/experts/moe_options.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace saker::models {

// A size under a key; the value for a missing field, or 0 if it must be given.
struct SizeField {
  std::string_view key;
  std::int64_t fallback = 0;
};

struct MoeFields {
  SizeField experts{"num_experts"};
  SizeField chosen{"num_experts_per_tok"};
  SizeField width{"moe_intermediate_size"};
};

// Sizes and activation; the router's rules are softmax over all experts.
nn::MoeOptions read_moe(const Json& json, const DecoderConfig& config, const MoeFields& fields);

// Softmax over the chosen experts if the flag is set, else over all.
kernels::RouterScore read_softmax(const Json& json, std::string_view key, bool fallback);

// Groups, `topk_group`, normalizing and `routed_scaling_factor` of sigmoid routers whose biases
// choose; groups are compared by their two best experts.
struct GroupedFields {
  SizeField groups{"n_group", 1};
  std::string_view normalized = "norm_topk_prob";
};

void read_grouped_sigmoid(const Json& json, nn::MoeOptions& moe, const GroupedFields& fields = {});

// That many times the width of an expert, 0 for none.
int read_shared_width(const Json& json, const SizeField& count, const nn::MoeOptions& moe);

// A width of its own, 0 for none.
int read_optional_width(const Json& json, const SizeField& field);

// `mlp_layer_types`: true for "sparse", false for "dense". None if the list is missing or null.
std::optional<std::vector<bool>> read_sparse_types(const Json& json, std::size_t layer_count);

// Experts in every `decoder_sparse_step`-th layer, except those in `mlp_only_layers`.
void set_sparse_layers(DecoderConfig& config, const Json& json);

// Experts in the layers that `mlp_layer_types` says; without it, in those from
// `first_k_dense_replace` on whose number `moe_layer_freq` divides.
void set_sparse_layers_by_type(DecoderConfig& config, const Json& json);

// Experts in all layers from number `key` on.
void set_layers_after(DecoderConfig& config, const Json& json, const SizeField& field);

// An integer in [0, high]; `fallback` if it is missing or null.
std::int64_t read_count(const Json& json, const SizeField& field, std::int64_t high);

// The format of routers and gates that choose, in quantized models.
inline constexpr kernels::WeightFormat kEightBits{
    .kind = kernels::WeightKind::kAffine, .bits = 8, .group_size = 64
};

// As TensorRules::own_format, for `mlp.gate` and `shared_expert_gate`.
std::optional<kernels::WeightFormat> gates_of_eight_bits(std::string_view module);

// As TensorRules::is_unread, for layers from `num_hidden_layers` on, which predict more tokens.
bool is_behind_layers(std::string_view name, const Json& config);

// As TensorRules::keeps_dtype, for biases that choose experts.
bool is_choice_bias(std::string_view name);

}  // namespace saker::models

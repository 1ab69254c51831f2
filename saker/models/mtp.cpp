// SPDX-License-Identifier: Apache-2.0
#include "saker/models/mtp.h"

#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/models/decoder.h"
#include "saker/models/moe_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <string_view>
#include <vector>

namespace saker::models {
namespace {

// Scopes of a head, beside the decoder's scopes.
constexpr std::array<std::string_view, 4> kScopes{
    "mtp", "model.mtp", "language_model.mtp", "language_model.model.mtp"
};

// The model's configuration with the head's layers. Each is like the model's last attention layer,
// but sees the whole past.
DecoderConfig head_config(DecoderConfig config, const nn::Weights& weights, const MtpNames& names) {
  const auto attends = [](const LayerConfig& layer) {
    return layer.mixing == TokenMixing::kAttention && !layer.shares_rows_of;
  };
  const auto found = std::ranges::find_if(config.layers | std::views::reverse, attends);
  require(
      found != config.layers.rend(),
      ErrorCode::kUnsupported,
      "[mtp] the model has no layer of full attention, which its head is made of"
  );
  LayerConfig layer = *found;
  layer.window = 0;
  int count = 1;
  while (!names.is_layer && count < kMaxMtpLayers &&
         (weights / "layers" / fmt::to_string(count) / "input_layernorm").has("weight")) {
    ++count;
  }
  config.layers.assign(static_cast<std::size_t>(count), layer);
  return config;
}

std::vector<nn::DecoderLayer> make_layers(
    const DecoderConfig& config, const nn::Weights& weights, const MtpNames& names
) {
  const nn::RopeOptions& rope = config.ropes.at(config.layers.front().rope);
  const auto shared = std::make_shared<const nn::Rope>(config.head_dim, rope);
  std::vector<nn::DecoderLayer> layers;
  layers.reserve(config.layers.size());
  for (int i = 0; i < static_cast<int>(config.layers.size()); ++i) {
    const nn::Weights scope = names.is_layer ? weights : weights / "layers" / fmt::to_string(i);
    layers.push_back(pre_norm_layer({scope, config, i, shared}));
  }
  return layers;
}

}  // namespace

std::optional<nn::Weights> mtp_scope(const nn::Weights& weights) {
  for (const auto scope : kScopes) {
    nn::Weights head = weights / scope;
    if ((head / "fc").has("weight") && (head / "pre_fc_norm_hidden").has("weight")) {
      return head;
    }
  }
  return std::nullopt;
}

namespace {

// "layers.61.mlp.gate.weight" behind any scope, as its number and "mlp.gate.weight"; none for other
// names.
struct LayerTensorName {
  std::int64_t behind;  // Counted from the model's last layer: 0 is the first one behind it.
  std::string_view rest;
};

std::optional<LayerTensorName> layer_behind(std::string_view name, const Json& config) {
  if (!is_behind_layers(name, config)) {
    return std::nullopt;
  }
  constexpr std::string_view kLayers = "layers.";
  const auto layer = numbered_name(name.substr(name.find(kLayers)), kLayers);
  const auto text = config.find("text_config");
  const Json& own = text != config.end() && text->is_object() ? *text : config;
  return LayerTensorName{
      layer->number - own.find("num_hidden_layers")->get<std::int64_t>(), layer->rest
  };
}

}  // namespace

bool is_of_next_layer(std::string_view name, const Json& config) {
  const auto layer = layer_behind(name, config);
  return layer && layer->behind == 0 && !layer->rest.starts_with("embed_tokens.") &&
         !layer->rest.starts_with("shared_head.head.");
}

bool is_behind_next_layer(std::string_view name, const Json& config) {
  return is_behind_layers(name, config) && !is_of_next_layer(name, config);
}

MtpHead::MtpHead(const DecoderConfig& config, const nn::Weights& weights, const MtpNames& names)
    : config_(head_config(config, weights, names)),
      hidden_(config.hidden),
      token_norm_(weights / names.token_norm, hidden_, config.norm),
      hidden_norm_(weights / names.hidden_norm, hidden_, config.norm),
      join_(weights / names.join, 2 * hidden_, hidden_),
      stack_(make_layers(config_, weights, names), {weights / names.norm, hidden_, config.norm}) {}

cache::SequenceCache MtpHead::make_cache(const CacheOptions& options) const {
  return make_layer_caches(config_, config_.layers, options, join_.packed());
}

mx::array MtpHead::forward(
    const mx::array& ids, const mx::array& before, nn::ForwardContext& context, const Model& target
) const {
  require(
      before.ndim() == 2 && before.shape(0) == context.row_count() && before.shape(1) == hidden_ &&
          static_cast<int>(ids.size()) == context.row_count(),
      ErrorCode::kInvalidArgument,
      "[mtp] rows [{}] and {} token ids, expected {} of {} numbers each",
      fmt::join(before.shape(), ", "),
      ids.size(),
      context.row_count(),
      hidden_
  );
  const mx::array tokens = token_norm_(target.embed(ids), {});
  const mx::array rows = hidden_norm_(mx::astype(before, tokens.dtype()), {});
  return stack_(join_(mx::concatenate({tokens, rows}, 1), {}), context);
}

void check_target(const MtpHead& head, const ModelInfo& target) {
  const auto check = [](std::string_view what, int got, int expected) {
    require(
        got == expected,
        ErrorCode::kInvalidArgument,
        "MTP head: its {} is {}, expected the model's {}",
        what,
        got,
        expected
    );
  };
  check("hidden_size", head.hidden_size(), target.hidden_size);
  check("vocab_size", head.vocab_size(), target.vocab_size);
}

}  // namespace saker::models

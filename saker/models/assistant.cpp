// SPDX-License-Identifier: Apache-2.0
#include "saker/models/assistant.h"

#include "saker/base/error.h"
#include "saker/kernels/ops/linear.h"
#include "saker/models/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

namespace saker::models {
namespace {

constexpr int kMaxCentroids = 1 << 20;
constexpr int kMaxHidden = 1 << 24;

const CachedRows& rows_for(const LayerConfig& layer, const ModelInfo& target) {
  return layer.window > 0 ? target.last_sliding : target.last_full;
}

AssistantConfig checked(const AssistantConfig& config, const ModelInfo& target) {
  check_target(config, target);
  return config;
}

// A copy whose layers attend to those of the target.
DecoderConfig attached(DecoderConfig config, const ModelInfo& target) {
  for (LayerConfig& layer : config.layers) {
    const CachedRows& rows = rows_for(layer, target);
    layer.shares_rows_of = rows.layer;
    layer.kv_heads = rows.kv_heads;
  }
  return config;
}

nn::DecoderStack make_stack(
    const AssistantConfig& config, const ModelInfo& target, const nn::Weights& weights
) {
  const DecoderConfig decoder = attached(config.decoder, target);
  std::map<std::size_t, std::shared_ptr<const nn::Rope>> ropes;
  std::vector<nn::DecoderLayer> layers;
  for (int i = 0; i < static_cast<int>(decoder.layers.size()); ++i) {
    const LayerConfig& layer = decoder.layers[static_cast<std::size_t>(i)];
    auto& rope = ropes[layer.rope];
    if (rope == nullptr) {
      rope = std::make_shared<const nn::Rope>(
          decoder.head_dim_of(layer), decoder.ropes.at(layer.rope)
      );
    }
    const nn::Weights scope = weights / "model" / "layers" / fmt::to_string(i);
    layers.push_back(config.build_layer({scope, decoder, i, rope}));
  }
  return {std::move(layers), {weights / "model" / "norm", decoder.hidden, decoder.norm}};
}

// Reads integers of a tensor, all in [0, high).
template <typename T>
std::vector<std::int32_t> read_ids(const Tensor& tensor, std::size_t count, int high) {
  std::vector<std::int32_t> ids;
  ids.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    T value = 0;
    std::memcpy(&value, tensor.data.get() + i * sizeof(T), sizeof(T));
    require(
        value >= 0 && value < high,
        ErrorCode::kCorruptData,
        "[masked_embedding.token_ordering] holds token {}, expected 0 to {}",
        value,
        high - 1
    );
    ids.push_back(static_cast<std::int32_t>(value));
  }
  return ids;
}

}  // namespace

bool is_assistant_config(const Json& config) {
  return assistant_architecture(config).has_value();
}

AssistantConfig read_assistant_config(const Json& config) {
  const auto architecture = assistant_architecture(config);
  assert(architecture && architecture->read_assistant != nullptr);
  AssistantConfig result;
  result.decoder = architecture->read_assistant(config);
  result.build_layer = architecture->build_layer;
  result.target_hidden =
      static_cast<int>(read_size(config, "backbone_hidden_size", 1536, kMaxHidden));
  if (json_bool(config, "use_ordered_embeddings", false)) {
    const int vocab_size = result.decoder.vocab_size;
    result.centroids = static_cast<int>(read_size(config, "num_centroids", 2048, kMaxCentroids));
    result.best_centroids =
        static_cast<int>(read_size(config, "centroid_intermediate_top_k", 32, result.centroids));
    require(
        vocab_size % result.centroids == 0,
        ErrorCode::kCorruptData,
        "[config] num_centroids is {}, expected a divisor of vocab_size {}",
        result.centroids,
        vocab_size
    );
  }
  return result;
}

void check_target(const AssistantConfig& config, const ModelInfo& target) {
  const auto check = [](std::string_view what, int got, int expected) {
    require(
        got == expected,
        ErrorCode::kInvalidArgument,
        "assistant: its {} is {}, expected the model's {}",
        what,
        got,
        expected
    );
  };
  check("backbone_hidden_size", config.target_hidden, target.hidden_size);
  check("vocab_size", config.decoder.vocab_size, target.vocab_size);
  for (const LayerConfig& layer : config.decoder.layers) {
    const CachedRows& rows = rows_for(layer, target);
    const std::string_view kind = layer.window > 0 ? "sliding" : "full";
    require(
        rows.layer >= 0,
        ErrorCode::kInvalidArgument,
        "assistant: it reads rows of a layer of {} attention, the model has none",
        kind
    );
    const int head_dim = config.decoder.head_dim_of(layer);
    require(
        head_dim == rows.head_dim && config.decoder.heads % rows.kv_heads == 0,
        ErrorCode::kInvalidArgument,
        "assistant: its layers of {} attention have {} heads of {}, expected a multiple of "
        "the model's {} of {}",
        kind,
        config.decoder.heads,
        head_dim,
        rows.kv_heads,
        rows.head_dim
    );
  }
}

AssistantDraft::AssistantDraft(
    const AssistantConfig& config, const ModelInfo& target, const nn::Weights& weights
)
    : config_(checked(config, target)),
      input_(weights / "pre_projection", 2 * config.target_hidden, config.decoder.hidden),
      output_(weights / "post_projection", config.decoder.hidden, config.target_hidden),
      embedding_(
          weights / "model" / "embed_tokens", config.decoder.vocab_size, config.decoder.hidden
      ),
      stack_(make_stack(config, target, weights)),
      groups_(make_groups(config, weights)) {
  for (const LayerConfig& layer : config.decoder.layers) {
    const int source = rows_for(layer, target).layer;
    if (std::ranges::find(source_layers_, source) == source_layers_.end()) {
      source_layers_.push_back(source);
    }
  }
}

std::optional<AssistantDraft::Groups> AssistantDraft::make_groups(
    const AssistantConfig& config, const nn::Weights& weights
) {
  if (config.centroids == 0) {
    return std::nullopt;
  }
  const nn::Weights scope = weights / "masked_embedding";
  const Tensor order = scope.take("token_ordering");
  const int vocab_size = config.decoder.vocab_size;
  require(
      (order.dtype == DType::kInt64 || order.dtype == DType::kInt32) &&
          order.shape == std::vector<std::int64_t>{vocab_size},
      ErrorCode::kCorruptData,
      "[{}] is {} [{}], expected I64 or I32 [{}]",
      scope.path("token_ordering"),
      dtype_name(order.dtype),
      fmt::join(order.shape, ", "),
      vocab_size
  );
  const auto count = static_cast<std::size_t>(vocab_size);
  const auto ids = order.dtype == DType::kInt64 ? read_ids<std::int64_t>(order, count, vocab_size)
                                                : read_ids<std::int32_t>(order, count, vocab_size);
  return Groups{
      .centroids = {scope / "centroids", config.decoder.hidden, config.centroids},
      .tokens = mx::array(ids.data(), {config.centroids, vocab_size / config.centroids}, mx::int32),
  };
}

mx::array AssistantDraft::forward(
    const mx::array& ids,
    const mx::array& before,
    std::span<cache::SequenceCache* const> caches,
    const Model& target
) const {
  const int rows = static_cast<int>(caches.size());
  require(
      before.ndim() == 2 && before.shape(0) == rows && before.shape(1) == config_.target_hidden &&
          static_cast<int>(ids.size()) == rows,
      ErrorCode::kInvalidArgument,
      "[assistant] rows [{}] and {} token ids, expected {} of {} numbers each",
      fmt::join(before.shape(), ", "),
      ids.size(),
      rows,
      config_.target_hidden
  );
  std::vector<nn::Span> spans;
  spans.reserve(caches.size());
  for (cache::SequenceCache* cache : caches) {
    spans.push_back({cache, 1});
  }
  auto context = nn::ForwardContext::over_last_rows(std::move(spans), source_layers_);
  const mx::array embedded = target.embed(ids);
  const auto scale = mx::array(target.info().embedding_scale, embedded.dtype());
  const mx::array joined =
      mx::concatenate({mx::multiply(embedded, scale), mx::astype(before, embedded.dtype())}, 1);
  return stack_(input_(joined, {}), context);
}

mx::array AssistantDraft::project(const mx::array& rows) const {
  return output_(rows, {});
}

mx::array AssistantDraft::logits(const mx::array& rows) const {
  if (!groups_) {
    return mx::astype(kernels::linear(rows, embedding_.packed()), mx::float32);
  }
  const int count = rows.shape(0);
  const int best = config_.best_centroids;
  const mx::array scores = mx::negative(mx::astype(groups_->centroids(rows, {}), mx::float32));
  const mx::array chosen = mx::slice(mx::argpartition(scores, best - 1, 1), {0, 0}, {count, best});
  const mx::array ids = mx::reshape(mx::take(groups_->tokens, chosen, 0), {count, -1});
  const mx::array table = mx::reshape(
      kernels::embed(mx::flatten(ids), embedding_.packed()), {count, ids.shape(1), rows.shape(1)}
  );
  const mx::array products = mx::squeeze(
      mx::matmul(mx::astype(table, mx::float32), mx::expand_dims(mx::astype(rows, mx::float32), 2)),
      2
  );
  constexpr float kNotSeen = -std::numeric_limits<float>::infinity();
  const mx::array none = mx::full({count, config_.decoder.vocab_size}, kNotSeen, mx::float32);
  return mx::put_along_axis(none, ids, products, 1);
}

}  // namespace saker::models

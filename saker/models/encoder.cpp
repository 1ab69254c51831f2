// SPDX-License-Identifier: Apache-2.0
#include "saker/models/encoder.h"

#include "saker/base/error.h"
#include "saker/cache/kv.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/models/token_ids.h"
#include "saker/nn/embedding.h"
#include "saker/nn/norm.h"
#include "saker/nn/rope.h"
#include "saker/nn/stack/encoder_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace saker::models {
namespace {

nn::NormOptions norm_options(const EncoderConfig& config) {
  return {.kind = kernels::NormKind::kLayer, .eps = config.norm_eps};
}

nn::Weights body_of(const EncoderNames& names, const nn::Weights& weights) {
  for (const std::string_view scope : names.bodies) {
    if ((weights / scope / names.words).has("weight")) {
      return weights / scope;
    }
  }
  return weights;
}

nn::LinearParts parts_of(
    const nn::Weights& scope, const std::vector<std::string_view>& names, int outputs
) {
  nn::LinearParts parts;
  for (const std::string_view name : names) {
    parts.push_back({scope / name, outputs / static_cast<int>(names.size())});
  }
  return parts;
}

// A table of rows that are added to the tokens' own.
std::optional<nn::Embedding> table_of(
    const nn::Weights& body, std::string_view name, int rows, int hidden
) {
  return rows > 0 ? std::optional(nn::Embedding(body / name, rows, hidden)) : std::nullopt;
}

class Encoder final : public Model {
 public:
  Encoder(const EncoderConfig& config, const nn::Weights& weights, const LoadProgress& progress)
      : Encoder(config, weights, body_of(config.names, weights), progress) {}

  const ModelInfo& info() const override { return info_; }

  mx::array forward(const mx::array& ids, nn::ForwardContext& context) const override {
    check(ids, context);
    kernels::ResidualNorm state = embedded(ids, context);
    capture(context, -1, state.sum);
    const auto& spans = context.append(0);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const nn::RopeTable rope = rotation(config_.layers[i], context);
      state = layers_[i](state, spans, rope, context.adapters());
      capture(context, static_cast<int>(i), state.sum);
      start(context, state);
    }
    capture(context, static_cast<int>(layers_.size()), state.normed);
    return state.normed;
  }

  // These throw: there is no head.
  mx::array unembed(const mx::array& hidden, const nn::RowContext&) const override {
    return without_head(hidden);
  }

  mx::array head_products(const mx::array& hidden) const override { return without_head(hidden); }

  mx::array embed(const mx::array& ids) const override { return words_(ids, 1.0F, {}); }

  const EmbeddingHead* embedding_head() const override { return &embedding_head_; }

  const std::vector<nn::Module>& modules() const override { return modules_; }

  cache::SequenceCache make_cache(const CacheOptions&) const override {
    const bool exact = words_.packed().format().kind == kernels::WeightKind::kFloat32;
    const kernels::KvShape shape{
        config_.heads, config_.head_dim, config_.head_dim, exact ? mx::float32 : mx::bfloat16
    };
    std::vector<std::unique_ptr<cache::LayerCache>> layers;
    layers.push_back(std::make_unique<cache::KVCache>(shape));
    return cache::SequenceCache(std::move(layers));
  }

  std::size_t cache_bytes(std::int64_t, int) const override { return 0; }

 private:
  Encoder(
      const EncoderConfig& config,
      const nn::Weights& weights,
      const nn::Weights& body,
      const LoadProgress& progress
  )
      : config_(config),
        words_(body / config.names.words, config.vocab_size, config.hidden),
        positions_(table_of(body, config.names.positions, config.position_count, config.hidden)),
        types_(table_of(body, config.names.types, config.type_count, config.hidden)),
        input_norm_(body / config.names.input_norm, config.hidden, norm_options(config)),
        embedding_head_(
            config.embedding,
            weights,
            config.hidden,
            Classifier::find(config.classifier, weights, body, config.hidden)
        ) {
    for (const nn::RopeOptions& rope : config.ropes) {
      ropes_.emplace_back(config.head_dim, rope);
    }
    const int count = static_cast<int>(config.layers.size());
    for (int i = 0; i < count; ++i) {
      layers_.push_back(make_layer(body, i));
      if (progress) {
        progress(i + 1, count);
      }
    }
    modules_ = weights.modules();
    info_.model_type = config.model_type;
    info_.layer_count = count;
    info_.hidden_size = config.hidden;
    info_.vocab_size = config.vocab_size;
    info_.context_length = config.context_length;
    info_.bidirectional = true;
    info_.has_head = false;
    info_.judges_pairs = embedding_head_.class_count() > 0;
    for (const nn::EncoderLayer& layer : layers_) {
      info_.weight_bytes += layer.nbytes();
    }
  }

  nn::EncoderLayer make_layer(const nn::Weights& body, int index) const {
    const EncoderNames& names = config_.names;
    const auto scope_of = [&](int layer) { return body / names.layers / fmt::to_string(layer); };
    const nn::Weights scope = scope_of(index);
    const auto norm = [&](const nn::Weights& weights) {
      return nn::Norm(weights, config_.hidden, norm_options(config_));
    };
    const bool is_last = index + 1 == static_cast<int>(config_.layers.size());
    const auto next_norm = [&] {
      return is_last ? body / names.final_norm : scope_of(index + 1) / names.attention_norm;
    };
    const nn::EncoderAttentionOptions attention{
        .hidden = config_.hidden,
        .heads = config_.heads,
        .head_dim = config_.head_dim,
        .attend =
            {
                .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config_.head_dim))),
                .window = config_.layers[static_cast<std::size_t>(index)].window,
                .bidirectional = true,
            },
    };
    const nn::EncoderMlpOptions mlp{
        config_.hidden, config_.intermediate, config_.activation, config_.gated
    };
    const int mlp_outputs = config_.intermediate * (config_.gated ? 2 : 1);
    return {
        .attention = nn::EncoderAttention(
            parts_of(scope, names.attention_inputs, 3 * config_.hidden),
            scope / names.attention_output,
            attention
        ),
        .after_attention = norm(scope / (config_.pre_norm ? names.mlp_norm : names.attention_norm)),
        .mlp = nn::EncoderMlp(
            parts_of(scope, names.mlp_inputs, mlp_outputs), scope / names.mlp_output, mlp
        ),
        .after_mlp = norm(config_.pre_norm ? next_norm() : scope / names.mlp_norm),
        .pre_norm = config_.pre_norm,
    };
  }

  void check(const mx::array& ids, const nn::ForwardContext& context) const {
    require(
        ids.ndim() == 1 && ids.shape(0) == context.row_count() &&
            (context.token_types.empty() || std::ssize(context.token_types) == context.row_count()),
        ErrorCode::kInvalidArgument,
        "[forward] {} token ids and {} types for {} rows",
        ids.size(),
        context.token_types.size(),
        context.row_count()
    );
    for (const nn::Span& span : context.spans()) {
      require(
          span.cache->offset() == 0,
          ErrorCode::kInvalidArgument,
          "[forward] a span begins at token {}, expected a whole text",
          span.cache->offset()
      );
    }
    for (const int layer : context.captured_layers) {
      require(
          layer >= -1 && layer <= info_.layer_count,
          ErrorCode::kInvalidArgument,
          "[forward] tap of layer {}, expected -1 (the embedding) to {} (the final rows)",
          layer,
          info_.layer_count
      );
    }
  }

  // The sum of the tables' rows, normed: the stream, and what the first attention reads.
  kernels::ResidualNorm embedded(const mx::array& ids, const nn::ForwardContext& context) const {
    mx::array rows = words_(ids, 1.0F, context.adapters());
    const mx::Shape shape{context.row_count()};
    if (types_) {
      const bool all_first = context.token_types.empty() || config_.type_count < 2;
      const auto types = all_first ? mx::zeros(shape, mx::int32)
                                   : mx::array(context.token_types.data(), shape, mx::int32);
      rows = mx::add(rows, (*types_)(types, 1.0F, {}));
    }
    if (positions_) {
      std::vector<std::int32_t> positions;
      positions.reserve(context.positions().size());
      for (const std::int64_t position : context.positions()) {
        positions.push_back(static_cast<std::int32_t>(position) + config_.first_position);
      }
      rows = mx::add(rows, (*positions_)(mx::array(positions.data(), shape, mx::int32), 1.0F, {}));
    }
    const mx::array normed = input_norm_(rows, context.adapters());
    return {normed, normed};
  }

  // Without a rope: one that leaves heads as they are.
  nn::RopeTable rotation(const EncoderLayerConfig& layer, nn::ForwardContext& context) const {
    if (!ropes_.empty()) {
      return context.rope_table(ropes_.at(layer.rope));
    }
    const mx::Shape shape{context.row_count(), 1};
    return {mx::ones(shape, mx::float32), mx::zeros(shape, mx::float32)};
  }

  static void capture(nn::ForwardContext& context, int layer, const mx::array& rows) {
    if (std::ranges::find(context.captured_layers, layer) != context.captured_layers.end()) {
      context.captured.insert_or_assign(layer, rows);
    }
  }

  // Lets the layer run while the next one is built, and bounds the memory of layers that wait.
  static void start(nn::ForwardContext& context, const kernels::ResidualNorm& state) {
    if (kernels::on_cpu()) {
      context.started.start(state.sum, state.normed);
      context.started.wait_until(1);
    }
  }

  mx::array without_head(const mx::array& hidden) const {
    check_predicts_tokens(info_);
    return hidden;
  }

  EncoderConfig config_;
  nn::Embedding words_;
  std::optional<nn::Embedding> positions_;
  std::optional<nn::Embedding> types_;
  nn::Norm input_norm_;
  std::vector<nn::Rope> ropes_;
  std::vector<nn::EncoderLayer> layers_;
  EmbeddingHead embedding_head_;
  std::vector<nn::Module> modules_;
  ModelInfo info_;
};

}  // namespace

std::unique_ptr<const Model> make_encoder(
    const EncoderConfig& config, const nn::Weights& weights, const LoadProgress& progress
) {
  return std::make_unique<const Encoder>(config, weights, progress);
}

}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
#include "saker/models/decoder.h"

#include "saker/base/error.h"
#include "saker/cache/kv.h"
#include "saker/cache/recurrent.h"
#include "saker/cache/window.h"
#include "saker/kernels/ops/activation.h"
#include "saker/kernels/ops/recurrent/short_convolution.h"
#include "saker/models/token_ids.h"
#include "saker/models/token_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace saker::models {
namespace {

// Scopes of the decoder's tensors: alone, inside a larger model's language model, or in a bare base
// model.
constexpr std::array<std::string_view, 6> kBodyScopes{
    "model", "language_model.model", "model.language_model", "language_model", "backbone", ""
};
constexpr std::array<std::string_view, 3> kHeadScopes{
    "lm_head", "language_model.lm_head", "model.lm_head"
};

mx::Dtype row_dtype(const kernels::PackedWeight& weight) {
  return weight.format().kind == kernels::WeightKind::kFloat32 ? mx::float32 : mx::bfloat16;
}

// None for a base model or a classifier, which are stored without the head that they had in
// training.
std::optional<nn::Linear> make_head(
    const nn::Weights& weights, const DecoderConfig& config, const nn::Embedding& embedding
) {
  const auto tied = [&] { return nn::Linear(weights / kHeadScopes.front(), embedding.packed()); };
  if (config.head == HeadChoice::kTied) {
    return tied();
  }
  for (const auto scope : kHeadScopes) {
    if ((weights / scope).has("weight")) {
      return nn::Linear(weights / scope, config.hidden, config.vocab_size);
    }
  }
  const bool is_base = config.embedding.is_declared || body_scope(weights).path("").empty() ||
                       (weights / "score").has("weight");
  if (config.head == HeadChoice::kUntied && is_base) {
    return std::nullopt;
  }
  require(
      config.head == HeadChoice::kByTensor,
      ErrorCode::kCorruptData,
      "[lm_head.weight] tensor is missing and tie_word_embeddings is false"
  );
  return tied();
}

// The token table's scope. REQUIRES: `body` has one.
nn::Weights token_table(const nn::Weights& body) {
  const auto* const found = std::ranges::find_if(kTokenTables, [&](std::string_view name) {
    return (body / name).has("weight");
  });
  return body / *found;
}

class Decoder final : public Model {
 public:
  Decoder(
      const DecoderConfig& config,
      const nn::Weights& weights,
      LayerBuilder build_layer,
      const LoadProgress& progress
  )
      : config_(config),
        embedding_(token_table(body_scope(weights)), config.vocab_size, config.hidden),
        layer_inputs_(make_layer_inputs(weights)),
        stack_(make_layers(weights, build_layer, progress), final_norm(weights)),
        head_(make_head(weights, config, embedding_)),
        embedding_head_(
            config.embedding,
            weights,
            config.hidden,
            Classifier::find({}, weights, weights, config.hidden)
        ),
        modules_(weights.modules()) {
    info_.model_type = config.model_type;
    info_.layer_count = static_cast<int>(config.layers.size());
    info_.hidden_size = config.hidden;
    info_.vocab_size = config.vocab_size;
    info_.deepest_branch_layer = config.deepest_branch_layer();
    info_.context_length = config.context_length;
    info_.embedding_scale = config.embedding_scale;
    info_.bidirectional = config.bidirectional;
    info_.has_head = head_.has_value();
    info_.rerank = config.rerank;
    if (config.layers.front().beside != TokenMixing::kNone) {
      info_.caches_per_layer = 2;
    }
    find_readable_rows();
    info_.weight_bytes = stack_.nbytes() + (head_ ? head_->nbytes() : 0) +
                         (layer_inputs_ ? layer_inputs_->nbytes() : 0);
  }

  const ModelInfo& info() const override { return info_; }

  mx::array forward(const mx::array& ids, nn::ForwardContext& context) const override {
    require(
        ids.ndim() == 1 && ids.shape(0) == context.row_count(),
        ErrorCode::kInvalidArgument,
        "[forward] {} token ids for {} rows",
        ids.size(),
        context.row_count()
    );
    const auto embedded = embedding_(ids, config_.embedding_scale, context.adapters());
    std::optional<mx::array> layer_inputs;
    if (layer_inputs_) {
      layer_inputs = (*layer_inputs_)(ids, embedded, context.adapters());
    }
    return stack_(embedded, context, std::move(layer_inputs));
  }

  mx::array unembed(const mx::array& hidden, const nn::RowContext& adapters) const override {
    auto logits = mx::astype(head()(hidden, adapters), mx::float32);
    if (config_.logit_scale != 1.0F) {
      logits = mx::multiply(logits, mx::array(config_.logit_scale));
    }
    return config_.final_softcap > 0.0F ? kernels::softcap(logits, config_.final_softcap) : logits;
  }

  mx::array embed(const mx::array& ids) const override { return embedding_(ids, 1.0F, {}); }

  mx::array head_products(const mx::array& hidden) const override {
    return mx::astype(head()(hidden, {}), mx::float32);
  }

  const EmbeddingHead* embedding_head() const override { return &embedding_head_; }

  const std::vector<nn::Module>& modules() const override { return modules_; }

  cache::SequenceCache make_cache(const CacheOptions& options) const override {
    require(
        options.max_kv_size >= 0,
        ErrorCode::kInvalidArgument,
        "[cache] max_kv_size is {}, expected 0 for no bound or a positive number",
        options.max_kv_size
    );
    return make_layer_caches(config_, config_.cached_layers(), options, embedding_.packed());
  }

  std::size_t cache_bytes(std::int64_t depth, int kv_bits) const override {
    std::size_t total = 0;
    for (const auto& layer : config_.cached_layers()) {
      if (layer.mixing != TokenMixing::kAttention) {
        total += config_.state_bytes(layer);
        continue;
      }
      const auto rows = layer.window > 0 ? std::min<std::int64_t>(depth, layer.window) : depth;
      const auto shape = config_.kv_shape(layer, kv_bits, kv_dtype());
      total += static_cast<std::size_t>(rows) * kernels::kv_row_bytes(shape);
    }
    return total;
  }

 private:
  const nn::Linear& head() const {
    check_predicts_tokens(info_);
    return *head_;
  }

  nn::Norm final_norm(const nn::Weights& weights) const {
    return {body_scope(weights) / config_.names.final_norm, config_.hidden, config_.norm};
  }

  std::optional<nn::LayerInputs> make_layer_inputs(const nn::Weights& weights) const {
    if (config_.layer_input_size == 0) {
      return std::nullopt;
    }
    return nn::LayerInputs(body_scope(weights), config_.layer_inputs());
  }

  std::vector<nn::DecoderLayer> make_layers(
      const nn::Weights& weights, LayerBuilder build_layer, const LoadProgress& progress
  ) const {
    std::vector<std::shared_ptr<const nn::Rope>> ropes(config_.ropes.size());
    const auto scope = body_scope(weights) / "layers";
    const int count = static_cast<int>(config_.layers.size());
    std::vector<nn::DecoderLayer> layers;
    for (int i = 0; i < count; ++i) {
      const auto& layer = config_.layers[static_cast<std::size_t>(i)];
      auto& rope = ropes.at(layer.rope);
      if (rope == nullptr) {
        const int head_dim = config_.head_dim_of(layer);
        rope = std::make_shared<const nn::Rope>(head_dim, config_.ropes[layer.rope]);
      }
      layers.push_back(build_layer({scope / fmt::to_string(i), config_, i, rope}));
      if (progress) {
        progress(i + 1, count);
      }
    }
    return layers;
  }

  void find_readable_rows() {
    const std::vector<LayerConfig> layers = config_.cached_layers();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (layers[i].mixing != TokenMixing::kAttention) {
        continue;
      }
      const kernels::KvShape shape =
          config_.kv_shape(layers[i], kernels::kUnquantizedBits, kv_dtype());
      (layers[i].window > 0 ? info_.last_sliding : info_.last_full
      ) = {static_cast<int>(i), shape.kv_heads, shape.head_dim};
    }
  }

  mx::Dtype kv_dtype() const { return row_dtype(embedding_.packed()); }

  DecoderConfig config_;
  nn::Embedding embedding_;
  std::optional<nn::LayerInputs> layer_inputs_;
  nn::DecoderStack stack_;
  std::optional<nn::Linear> head_;  // May share the embedding's weight.
  EmbeddingHead embedding_head_;
  std::vector<nn::Module> modules_;
  ModelInfo info_;
};

nn::Norm layer_norm(const LayerParts& parts, std::string_view name) {
  return {parts.weights / name, parts.config.hidden, parts.config.norm};
}

// REQUIRES: `mixing` is one of the layer's.
nn::LayerMixer token_mixer(const LayerParts& parts, TokenMixing mixing) {
  const auto& layer = parts.config.layers.at(static_cast<std::size_t>(parts.index));
  const DecoderNames& names = parts.config.names;
  if (mixing == TokenMixing::kGatedDelta) {
    return nn::GatedDeltaNet(parts.weights / names.gated_delta, parts.config.delta);
  }
  if (mixing == TokenMixing::kKda) {
    return nn::Kda(parts.weights / names.kda, parts.config.kda);
  }
  if (mixing == TokenMixing::kShortConvolution) {
    return nn::ShortConvolution(
        parts.weights / names.short_convolution, parts.config.short_convolution
    );
  }
  if (mixing == TokenMixing::kMamba2) {
    return nn::Mamba2(parts.weights / names.mamba2, parts.config.mamba2);
  }
  const auto scope = parts.weights / names.attention;
  if (parts.config.latent) {
    return nn::LatentAttention(scope, *parts.config.latent, parts.rope);
  }
  const auto options = parts.config.attention(parts.index);
  if (layer.shares_rows_of) {
    return nn::SharedAttention(scope, options, parts.rope, *layer.shares_rows_of);
  }
  return nn::Attention(scope, options, parts.rope);
}

bool has_mlp_beside_experts(const LayerParts& parts) {
  return parts.config.mlp_beside_experts &&
         parts.config.layers.at(static_cast<std::size_t>(parts.index)).experts;
}

nn::LayerMixer feed_forward(const LayerParts& parts) {
  if (has_mlp_beside_experts(parts)) {
    return nn::MlpBesideExperts(
        parts.weights,
        {.mlp = parts.config.mlp(parts.index),
         .moe = parts.config.moe,
         .norm = parts.config.norm,
         .mlp_scope = parts.config.feed_forward}
    );
  }
  const auto scope = parts.weights / parts.config.feed_forward;
  if (parts.config.layers.at(static_cast<std::size_t>(parts.index)).experts) {
    const std::string_view published = parts.config.published_experts;
    return nn::Moe(
        published.empty() ? scope : parts.weights / published, parts.config.moe, parts.weights
    );
  }
  return nn::GatedMlp(scope, parts.config.mlp(parts.index));
}

// A layer of what mixes tokens and an MLP, or of one of them, with the norms of these names; empty:
// none.
nn::DecoderLayer two_part_layer(
    const LayerParts& parts,
    const std::array<std::string_view, 2>& norms,
    const std::array<std::string_view, 2>& output_norms = {}
) {
  const auto norm = [&](std::string_view name) {
    return name.empty() ? std::nullopt : std::optional(layer_norm(parts, name));
  };
  // An MLP beside experts reads the stream.
  const auto feed_forward_norm = has_mlp_beside_experts(parts) ? std::string_view() : norms[1];
  const float scale = parts.config.residual_scale;
  const auto& config = parts.config.layers.at(static_cast<std::size_t>(parts.index));
  nn::DecoderLayer layer;
  for (const TokenMixing mixing : {config.mixing, config.beside}) {
    if (mixing == TokenMixing::kNone) {
      continue;
    }
    const PartScales& own =
        mixing == TokenMixing::kMamba2 ? parts.config.mamba2_scales : parts.config.attention_scales;
    const bool second = !layer.parts.empty();
    layer.parts.push_back(
        {.norm = second ? std::nullopt : norm(norms[0]),
         .mixer = token_mixer(parts, mixing),
         .output_norm = norm(output_norms[0]),
         .scale = scale * own.output,
         .input_scale = own.input,
         .reads_same_rows = second}
    );
  }
  if (config.feed_forward != FeedForward::kNone) {
    layer.parts.push_back(
        {.norm = norm(feed_forward_norm),
         .mixer = feed_forward(parts),
         .output_norm = norm(output_norms[1]),
         .scale = scale * parts.config.mlp_scales.output}
    );
  }
  return layer;
}

}  // namespace

std::optional<nn::Weights> find_body_scope(const nn::Weights& weights) {
  for (const auto scope : kBodyScopes) {
    nn::Weights body = weights / scope;
    const bool found = std::ranges::any_of(kTokenTables, [&](std::string_view name) {
      return (body / name).has("weight");
    });
    if (found) {
      return body;
    }
  }
  return std::nullopt;
}

nn::Weights body_scope(const nn::Weights& weights) {
  auto scope = find_body_scope(weights);
  require(
      scope.has_value(), ErrorCode::kCorruptData, "[model.embed_tokens.weight] tensor is missing"
  );
  return *std::move(scope);
}

nn::DecoderLayer pre_norm_layer(const LayerParts& parts) {
  return two_part_layer(parts, parts.config.names.norms);
}

nn::DecoderLayer sandwich_norm_layer(const LayerParts& parts) {
  const auto& norms = parts.config.names.outer_norms;
  return two_part_layer(parts, {norms[0], norms[2]}, {norms[1], norms[3]});
}

nn::DecoderLayer post_norm_layer(const LayerParts& parts) {
  const auto& norms = parts.config.names.outer_norms;
  return two_part_layer(parts, {}, {norms[1], norms[3]});
}

nn::DecoderLayer parallel_layer(const LayerParts& parts) {
  auto layer = two_part_layer(parts, {parts.config.names.norms[0], {}});
  layer.parts.back().reads_same_rows = true;
  return layer;
}

std::vector<std::string_view> stream_norms(const DecoderConfig& config, LayerBuilder builder) {
  const auto& outer = config.names.outer_norms;
  if (builder == pre_norm_layer) {
    return {config.names.norms.begin(), config.names.norms.end()};
  }
  if (builder == post_norm_layer) {
    return {outer[1], outer[3]};
  }
  return builder == parallel_layer ? std::vector{config.names.norms[0]}
                                   : std::vector<std::string_view>(outer.begin(), outer.end());
}

namespace {

// REQUIRES: a layer with a state.
cache::RecurrentState empty_state(const DecoderConfig& config, const LayerConfig& layer) {
  if (layer.mixing == TokenMixing::kShortConvolution) {
    return kernels::empty_convolution_state(
        config.short_convolution.taps, config.short_convolution.hidden
    );
  }
  if (layer.mixing == TokenMixing::kKda) {
    return kernels::empty_kda_state(config.kda.shape);
  }
  if (layer.mixing == TokenMixing::kMamba2) {
    return kernels::empty_scan_state(config.mamba2.shape);
  }
  auto state = kernels::empty_delta_state(config.delta.shape);
  return {std::move(state.inputs), std::move(state.memory)};
}

}  // namespace

std::unique_ptr<cache::LayerCache> make_layer_cache(
    const DecoderConfig& config,
    const LayerConfig& layer,
    const CacheOptions& options,
    mx::Dtype dtype
) {
  if (layer.mixing != TokenMixing::kAttention) {
    return std::make_unique<cache::RecurrentCache>(empty_state(config, layer));
  }
  const auto shape = config.kv_shape(layer, options.kv_bits, dtype);
  if (layer.window > 0) {
    return std::make_unique<cache::WindowCache>(shape, layer.window);
  }
  if (options.max_kv_size > 0) {
    const int keep = std::min(cache::kRotatingDefaultKeep, options.max_kv_size - 1);
    return std::make_unique<cache::WindowCache>(shape, options.max_kv_size, keep);
  }
  return std::make_unique<cache::KVCache>(shape);
}

cache::SequenceCache make_layer_caches(
    const DecoderConfig& config,
    std::span<const LayerConfig> layers,
    const CacheOptions& options,
    const kernels::PackedWeight& weight
) {
  std::vector<std::unique_ptr<cache::LayerCache>> caches;
  caches.reserve(layers.size());
  for (const LayerConfig& layer : layers) {
    caches.push_back(make_layer_cache(config, layer, options, row_dtype(weight)));
  }
  return cache::SequenceCache(std::move(caches));
}

std::unique_ptr<const Model> make_decoder(
    const DecoderConfig& config,
    const nn::Weights& weights,
    LayerBuilder build_layer,
    const LoadProgress& progress
) {
  return std::make_unique<const Decoder>(config, weights, build_layer, progress);
}

}  // namespace saker::models

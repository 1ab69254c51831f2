// SPDX-License-Identifier: Apache-2.0
#include "saker/models/eagle3.h"

#include "saker/base/error.h"
#include "saker/models/decoder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace saker::models {
namespace {

constexpr std::array<std::string_view, 2> kHeadPrefixes{"draft.", "model."};
constexpr std::string_view kOnlyLayer = "midlayer.";

std::string own_name(std::string_view name) {
  for (const std::string_view prefix : kHeadPrefixes) {
    if (name.starts_with(prefix)) {
      name.remove_prefix(prefix.size());
    }
  }
  if (name.starts_with(kOnlyLayer)) {
    return fmt::format("layers.0.{}", name.substr(kOnlyLayer.size()));
  }
  return std::string(name);
}

Eagle3Config fitting(Eagle3Config config, const ModelInfo& target, const nn::Weights& weights) {
  check_target(config, target);
  // Heads like a Qwen 3's have these norms, whatever their model_type.
  config.decoder.head_norms = (weights / "layers" / "0" / "self_attn" / "q_norm").has("weight");
  require(
      (weights / "embed_tokens").has("weight") || config.decoder.hidden == target.hidden_size,
      ErrorCode::kInvalidArgument,
      "EAGLE-3 head: its hidden_size is {} and it has no embed_tokens.weight, expected the model's "
      "hidden_size {}",
      config.decoder.hidden,
      target.hidden_size
  );
  return config;
}

nn::AttentionOptions attention_options(const DecoderConfig& config, int layer) {
  nn::AttentionOptions options = config.attention(layer);
  options.input = layer == 0 ? 2 * config.hidden : config.hidden;
  return options;
}

std::optional<nn::Embedding> make_embedding(
    const nn::Weights& weights, const DecoderConfig& config
) {
  if (!weights.has("weight")) {
    return std::nullopt;
  }
  return nn::Embedding(weights, config.vocab_size, config.hidden);
}

std::optional<nn::Linear> make_head(
    const nn::Weights& weights,
    const Eagle3Config& config,
    const std::optional<nn::Embedding>& embedding,
    const ModelInfo& target
) {
  const DecoderConfig& decoder = config.decoder;
  const bool is_whole = config.draft_vocab_size == decoder.vocab_size;
  if (!weights.has("weight") && is_whole) {
    if (decoder.head == HeadChoice::kTied && embedding) {
      return nn::Linear(weights, embedding->packed());
    }
    if (decoder.hidden == target.hidden_size) {
      return std::nullopt;
    }
  }
  return nn::Linear(weights, decoder.hidden, config.draft_vocab_size);
}

template <typename T>
std::int64_t element(const Tensor& tensor, std::size_t index) {
  T value = 0;
  std::memcpy(&value, tensor.data.get() + index * sizeof(T), sizeof(T));
  return value;
}

// `d2t`: what has to be added to each token of the head's to get the target's.
std::optional<mx::array> read_tokens(const nn::Weights& weights, const Eagle3Config& config) {
  if (weights.has("t2d")) {
    weights.take("t2d");  // A mask of the same tokens.
  }
  const int count = config.draft_vocab_size;
  const int vocab_size = config.decoder.vocab_size;
  if (!weights.has("d2t") && count == vocab_size) {
    return std::nullopt;
  }
  const Tensor offsets = weights.take("d2t");
  require(
      (offsets.dtype == DType::kInt64 || offsets.dtype == DType::kInt32) &&
          offsets.shape == std::vector<std::int64_t>{count},
      ErrorCode::kCorruptData,
      "[{}] is {} [{}], expected I64 or I32 [{}]",
      weights.path("d2t"),
      dtype_name(offsets.dtype),
      fmt::join(offsets.shape, ", "),
      count
  );
  std::vector<std::int32_t> tokens;
  std::vector<bool> seen(static_cast<std::size_t>(vocab_size));
  tokens.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const std::int64_t offset = offsets.dtype == DType::kInt64
                                    ? element<std::int64_t>(offsets, index)
                                    : element<std::int32_t>(offsets, index);
    require(
        offset >= -i && offset < vocab_size - i,
        ErrorCode::kCorruptData,
        "[{}] adds {} to token {}, expected a token from 0 to {}",
        weights.path("d2t"),
        offset,
        i,
        vocab_size - 1
    );
    const auto token = static_cast<std::int32_t>(i + offset);
    require(
        !seen[static_cast<std::size_t>(token)],
        ErrorCode::kCorruptData,
        "[{}] has the target's token {} twice",
        weights.path("d2t"),
        token
    );
    seen[static_cast<std::size_t>(token)] = true;
    tokens.push_back(token);
  }
  return mx::array(tokens.data(), {1, count}, mx::int32);
}

}  // namespace

TensorMap eagle3_tensors(TensorMap tensors) {
  TensorMap result;
  for (auto& [name, tensor] : tensors) {
    require(
        !name.starts_with("mtp.") && name.find("pre_fc_norm_hidden.") == std::string::npos,
        ErrorCode::kUnsupported,
        "[{}] tensor of an MTP head in the folder of an EAGLE-3 head: a folder holds one draft",
        name
    );
    const auto added = result.emplace(own_name(name), std::move(tensor));
    require(
        added.second,
        ErrorCode::kCorruptData,
        "[{}] tensor is there twice, also under the name {}",
        added.first->first,
        name
    );
  }
  return result;
}

Eagle3Head::Eagle3Head(
    const Eagle3Config& config, const ModelInfo& target, const nn::Weights& weights
)
    : config_(fitting(config, target, weights)),
      row_dtype_(mx::bfloat16),
      embedding_(make_embedding(weights / "embed_tokens", config_.decoder)),
      hidden_norm_(
          weights / "layers" / "0" / "hidden_norm", config_.decoder.hidden, config_.decoder.norm
      ),
      final_norm_(weights / "norm", config_.decoder.hidden, config_.decoder.norm),
      head_(make_head(weights / "lm_head", config_, embedding_, target)),
      tokens_(read_tokens(weights, config_)) {
  const DecoderConfig& decoder = config_.decoder;
  const int hidden = decoder.hidden;
  if (config_.reads_layers) {
    const int width = config_.tap_count * config_.target_hidden;
    fuse_ = nn::Linear(weights / "fc", width, hidden);
    if (config_.norm_before_fc) {
      taps_norm_ = nn::Norm(weights / "input_norm", width, decoder.norm);
    }
    for (int i = 0; config_.norm_each_tap && i < config_.tap_count; ++i) {
      const nn::Weights scope = weights / "fc_norm" / fmt::to_string(i);
      tap_norms_.emplace_back(scope, config_.target_hidden, decoder.norm);
    }
  }
  const auto rope = std::make_shared<const nn::Rope>(decoder.head_dim, decoder.ropes.front());
  for (int i = 0; i < static_cast<int>(decoder.layers.size()); ++i) {
    const nn::Weights scope = weights / "layers" / fmt::to_string(i);
    layers_.push_back({
        .input_norm = {scope / "input_layernorm", hidden, decoder.norm},
        .attention = {scope / "self_attn", attention_options(decoder, i), rope},
        .mlp_norm = {scope / "post_attention_layernorm", hidden, decoder.norm},
        .mlp = {scope / "mlp", decoder.mlp(i)},
    });
  }
  const auto first = (weights / "layers" / "0" / "self_attn" / "o_proj").find("weight");
  if (first && first->dtype == DType::kFloat32) {
    row_dtype_ = mx::float32;
  }
}

std::vector<int> Eagle3Head::captured_layers(const ModelInfo& target) const {
  if (!config_.reads_layers) {
    return {target.layer_count};
  }
  return config_.target_layers.empty() ? default_eagle3_layers(target.layer_count)
                                       : config_.target_layers;
}

cache::SequenceCache Eagle3Head::make_cache(const CacheOptions& options) const {
  std::vector<std::unique_ptr<cache::LayerCache>> caches;
  for (const LayerConfig& layer : config_.decoder.layers) {
    caches.push_back(make_layer_cache(config_.decoder, layer, options, row_dtype_));
  }
  return cache::SequenceCache(std::move(caches));
}

void Eagle3Head::check_rows(const mx::array& rows, int width, const mx::array& ids, int count)
    const {
  require(
      rows.ndim() == 2 && rows.shape(0) == count && rows.shape(1) == width &&
          static_cast<int>(ids.size()) == count,
      ErrorCode::kInvalidArgument,
      "[eagle3] rows [{}] and {} token ids, expected {} of {} numbers each",
      fmt::join(rows.shape(), ", "),
      ids.size(),
      count,
      width
  );
}

mx::array Eagle3Head::embed(const mx::array& ids, const Model& target) const {
  return embedding_ ? (*embedding_)(ids, 1.0F, {}) : target.embed(ids);
}

mx::array Eagle3Head::fused(const mx::array& features) const {
  mx::array rows = features;
  if (taps_norm_) {
    rows = (*taps_norm_)(rows, {});
  }
  if (!tap_norms_.empty()) {
    std::vector<mx::array> parts = mx::split(rows, config_.tap_count, 1);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i] = tap_norms_[i](mx::contiguous(parts[i]), {});
    }
    rows = mx::concatenate(std::move(parts), 1);
  }
  return (*fuse_)(rows, {});
}

mx::array Eagle3Head::forward(
    const mx::array& ids,
    const mx::array& features,
    nn::ForwardContext& context,
    const Model& target
) const {
  check_rows(features, config_.tap_count * config_.target_hidden, ids, context.row_count());
  const mx::array embedded = embed(ids, target);
  const mx::array rows = mx::astype(features, embedded.dtype());
  return run(embedded, fuse_ ? fused(rows) : rows, context);
}

mx::array Eagle3Head::go_on(
    const mx::array& ids, const mx::array& before, nn::ForwardContext& context, const Model& target
) const {
  check_rows(before, config_.decoder.hidden, ids, context.row_count());
  const mx::array embedded = embed(ids, target);
  return run(embedded, mx::astype(before, embedded.dtype()), context);
}

mx::array Eagle3Head::run(
    const mx::array& embedded, const mx::array& before, nn::ForwardContext& context
) const {
  const mx::array normed = hidden_norm_(before, {});
  const mx::array tokens = layers_.front().input_norm(embedded, {});
  kernels::ResidualNorm state{
      config_.norm_before_residual ? normed : before, mx::concatenate({tokens, normed}, 1)
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const nn::ResidualTarget before_mlp{state.sum, layer.mlp_norm};
    state = layer.attention.add_to(before_mlp, state.normed, context, static_cast<int>(i));
    const auto& next = i + 1 < layers_.size() ? layers_[i + 1].input_norm : final_norm_;
    const nn::ResidualTarget after_mlp{state.sum, next};
    state = layer.mlp.add_to(after_mlp, state.normed, {});
  }
  return config_.norm_output ? state.normed : state.sum;
}

mx::array Eagle3Head::logits(const mx::array& rows, const Model& target) const {
  const mx::array normed = config_.norm_output ? rows : final_norm_(rows, {});
  const mx::array products =
      head_ ? mx::astype((*head_)(normed, {}), mx::float32) : target.unembed(normed, {});
  if (!tokens_) {
    return products;
  }
  constexpr float kUnknown = -std::numeric_limits<float>::infinity();
  const mx::Shape shape{rows.shape(0), config_.decoder.vocab_size};
  const mx::array tokens = mx::broadcast_to(*tokens_, products.shape());
  return mx::put_along_axis(mx::full(shape, kUnknown, mx::float32), tokens, products, 1);
}

}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
#include "saker/models/dflash.h"

#include "saker/base/error.h"
#include "saker/base/log_prob.h"
#include "saker/kernels/ops/activation.h"
#include "saker/kernels/ops/linear.h"
#include "saker/models/decoder.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <utility>

namespace saker::models {
namespace {

constexpr std::array<std::string_view, 3> kPrefixes{"draft.", "model.", "encoder."};

// Parts of tensor names that only other kinds of drafts have.
constexpr std::array<std::string_view, 5> kForeign{
    "aux_hidden_norms.", "g_proj.", "fc_norm.", "mask_embedding", "d2t"
};

std::string canonical_name(std::string_view name) {
  for (const std::string_view prefix : kPrefixes) {
    if (name.starts_with(prefix)) {
      name.remove_prefix(prefix.size());
    }
  }
  constexpr std::string_view kContextNorm = "output_norm_enc.";
  if (name.starts_with(kContextNorm)) {
    return "hidden_norm." + std::string(name.substr(kContextNorm.size()));
  }
  return std::string(name) + (name.ends_with("_codebook") ? ".weight" : "");
}

// Options of a layer whose tokens see the whole block, or only their own past.
nn::AttentionOptions attention_options(const DflashConfig& config, int layer) {
  nn::AttentionOptions options = config.decoder.attention(layer);
  options.attend.bidirectional = !config.causal[static_cast<std::size_t>(layer)];
  return options;
}

}  // namespace

TensorMap dflash_tensors(TensorMap tensors) {
  TensorMap result;
  for (auto& [name, tensor] : tensors) {
    for (const std::string_view foreign : kForeign) {
      require(
          name.find(foreign) == std::string::npos,
          ErrorCode::kUnsupported,
          "[{}] tensor of a kind of draft that can't be run: only DFlash and DFlash 2 can",
          name
      );
    }
    result.insert_or_assign(canonical_name(name), std::move(tensor));
  }
  return result;
}

CandidateSelector::CandidateSelector(const nn::Weights& weights, const DflashConfig& config)
    : choices_(config.second->selector_choices),
      projection_(
          weights / "hidden_projection", config.decoder.hidden, config.second->selector_rank
      ),
      predecessors_(nn::pack_linear(
          weights / "predecessor_codebook", config.second->selector_rank, config.decoder.vocab_size
      )),
      successors_(nn::pack_linear(
          weights / "successor_codebook", config.second->selector_rank, config.decoder.vocab_size
      )) {}

mx::array CandidateSelector::project(const mx::array& hidden) const {
  return mx::astype(projection_(hidden, {}), mx::float32);
}

void CandidateSelector::rescore(
    std::span<float> logits, std::span<const float> projected, std::int32_t before
) const {
  const auto candidates = top_tokens(logits, choices_, 0.0);
  std::vector<std::int32_t> ids;
  ids.reserve(candidates.size());
  for (const auto& candidate : candidates) {
    ids.push_back(candidate.first);
  }
  const auto count = static_cast<int>(ids.size());
  const auto rows = [](const mx::array& table) {
    return mx::contiguous(mx::astype(table, mx::float32));
  };
  const auto follow = rows(kernels::embed(mx::array(ids.data(), mx::Shape{count}), successors_));
  const auto lead = rows(kernels::embed(mx::array({before}, mx::int32), predecessors_));
  mx::eval(follow, lead);
  std::ranges::fill(logits, -std::numeric_limits<float>::infinity());
  for (std::size_t c = 0; c < ids.size(); ++c) {
    const float* successor = follow.data<float>() + c * projected.size();
    auto score = static_cast<float>(candidates[c].second);
    for (std::size_t r = 0; r < projected.size(); ++r) {
      score += lead.data<float>()[r] * projected[r] * successor[r];
    }
    logits[static_cast<std::size_t>(ids[c])] = score;
  }
}

DflashDraft::DflashDraft(const DflashConfig& config, const nn::Weights& weights)
    : config_(config),
      fuse_(
          weights / "fc",
          static_cast<int>(config.target_layers.size()) * config.decoder.hidden,
          config.decoder.hidden
      ),
      context_norm_(weights / "hidden_norm", config.decoder.hidden, config.decoder.norm),
      final_norm_(weights / "norm", config.decoder.hidden, config.decoder.norm) {
  const nn::RopeOptions& rope = config.decoder.ropes.front();
  const auto shared = std::make_shared<const nn::Rope>(config.decoder.head_dim, rope);
  for (int i = 0; i < static_cast<int>(config.decoder.layers.size()); ++i) {
    layers_.push_back(make_layer(weights / "layers" / fmt::to_string(i), config, i, shared));
  }
  if (config.second) {
    selector_.emplace(weights / "candidate_selector", config);
  }
}

DflashDraft::Layer DflashDraft::make_layer(
    const nn::Weights& weights,
    const DflashConfig& config,
    int index,
    const std::shared_ptr<const nn::Rope>& rope
) {
  const int hidden = config.decoder.hidden;
  const auto conv = [&](std::string_view name) -> std::optional<nn::DynamicConv> {
    if (!config.second) {
      return std::nullopt;
    }
    const nn::DynamicConvOptions options{
        hidden, config.second->conv_taps, config.second->conv_group
    };
    return nn::DynamicConv(weights / name, options);
  };
  return {
      .attention_norm = {weights / "input_layernorm", hidden, config.decoder.norm},
      .attention = {weights / "self_attn", attention_options(config, index), rope},
      .mlp_norm = {weights / "post_attention_layernorm", hidden, config.decoder.norm},
      .mlp = {weights / "mlp", config.decoder.mlp(index)},
      .attention_conv = conv("attention_conv"),
      .mlp_conv = conv("mlp_conv"),
  };
}

cache::SequenceCache DflashDraft::make_cache(const CacheOptions& options) const {
  return make_layer_caches(config_.decoder, config_.decoder.layers, options, fuse_.packed());
}

void DflashDraft::remember(const mx::array& features, nn::ForwardContext& context) const {
  const int width = static_cast<int>(config_.target_layers.size()) * config_.decoder.hidden;
  require(
      features.ndim() == 2 && features.shape(0) == context.row_count() &&
          features.shape(1) == width,
      ErrorCode::kInvalidArgument,
      "[dflash] context rows [{}], expected [{}, {}]",
      fmt::join(features.shape(), ", "),
      context.row_count(),
      width
  );
  const auto rows = context_norm_(fuse_(features, {}), {});
  std::vector<nn::BlockAttention::Rows> kept;
  std::vector<mx::array> results;
  for (const Layer& layer : layers_) {
    kept.push_back(layer.attention.rows(rows, context));
    results.push_back(kept.back().keys);
    results.push_back(kept.back().values);
  }
  mx::eval(std::move(results));
  for (std::size_t i = 0; i < kept.size(); ++i) {
    nn::BlockAttention::remember(kept[i], context, static_cast<int>(i));
  }
}

mx::array DflashDraft::forward(const mx::array& embedded, nn::ForwardContext& context) const {
  const float scale = config_.embedding_scale;
  const auto x =
      scale == 1.0F ? embedded : mx::multiply(embedded, mx::array(scale, embedded.dtype()));
  kernels::ResidualNorm state{x, layers_.front().attention_norm(x, {})};
  // Runs a part of a layer between its convolutions.
  const auto convolved = [&](const nn::DynamicConv& conv, const auto& part) {
    const auto prepared = conv.prepare(state.normed, context);
    return conv.finish(part(prepared.rows), prepared.dynamic, context);
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const int index = static_cast<int>(i);
    const auto attend = [&](const mx::array& rows) {
      return layer.attention(rows, context, index);
    };
    const nn::ResidualTarget before_mlp{state.sum, layer.mlp_norm};
    state = layer.attention_conv ? before_mlp.add(convolved(*layer.attention_conv, attend), {})
                                 : layer.attention.add_to(before_mlp, state.normed, context, index);
    const auto feed = [&](const mx::array& rows) { return layer.mlp(rows, {}); };
    const auto& next = i + 1 < layers_.size() ? layers_[i + 1].attention_norm : final_norm_;
    const nn::ResidualTarget after_mlp{state.sum, next};
    state = layer.mlp_conv ? after_mlp.add(convolved(*layer.mlp_conv, feed), {})
                           : layer.mlp.add_to(after_mlp, state.normed, {});
  }
  return state.normed;
}

mx::array DflashDraft::logits(const mx::array& hidden, const Model& target) const {
  auto logits = target.head_products(hidden);
  if (config_.output_multiplier != 1.0F) {
    logits = mx::multiply(logits, mx::array(config_.output_multiplier));
  }
  return config_.final_softcap > 0.0F ? kernels::softcap(logits, config_.final_softcap) : logits;
}

}  // namespace saker::models

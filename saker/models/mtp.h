// SPDX-License-Identifier: Apache-2.0
#pragma once

// A head that predicts one more token than its model, as in Qwen 3.5's checkpoints under "mtp.".
// Its input at position S joins the token at S + 1 with the model's hidden state at S. It has
// decoder layers like the model's own with full attention. The model's head then gives the token at
// S + 2:
//   x = fc [norm(embed(token S + 1)), norm(final normed row S)]
//   y = norm(layers(x)),  logits of S + 2 = head(y)
// Other checkpoints have a head of one layer behind the model's layers, with names of its own.
// For further tokens, y takes the place of the model's hidden state.

#include "saker/base/json/json.h"
#include "saker/cache/sequence_cache.h"
#include "saker/kernels/mx.h"
#include "saker/models/decoder_config.h"
#include "saker/models/draft_head.h"
#include "saker/models/model.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/linear.h"
#include "saker/nn/norm.h"
#include "saker/nn/stack/decoder_stack.h"
#include "saker/nn/weights/weights.h"

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace saker::models {

inline constexpr int kMaxMtpLayers = 64;

// Names in a head's scope.
struct MtpNames {
  std::string_view token_norm = "pre_fc_norm_embedding";
  std::string_view hidden_norm = "pre_fc_norm_hidden";
  std::string_view join = "fc";
  std::string_view norm = "norm";
  bool is_layer = false;  // The scope is that of its only layer, else it has `layers`.
};

// A head in a layer of its own.
inline constexpr MtpNames kNextLayerNames{
    .token_norm = "enorm",
    .hidden_norm = "hnorm",
    .join = "eh_proj",
    .norm = "shared_head.norm",
    .is_layer = true,
};

// The scope of a head's tensors under "mtp."; none: there is no head.
std::optional<nn::Weights> mtp_scope(const nn::Weights& weights);

// True for a tensor of the head in the first layer behind the model's. Heads there have copies of
// the model's token table and head, which are none of it.
bool is_of_next_layer(std::string_view name, const Json& config);

// True for other tensors behind the model's layers.
bool is_behind_next_layer(std::string_view name, const Json& config);

class MtpHead final : public DraftHead {
 public:
  // `config`: the model's; `weights`: the head's scope. Throws kUnsupported for a model without
  // full-attention layers, kCorruptData naming a tensor that is missing or has another shape.
  MtpHead(const DecoderConfig& config, const nn::Weights& weights, const MtpNames& names = {});

  int hidden_size() const { return hidden_; }

  int vocab_size() const { return config_.vocab_size; }

  std::string_view name() const override { return "MTP head"; }

  std::vector<int> captured_layers(const ModelInfo& target) const override {
    return {target.layer_count};
  }

  cache::SequenceCache make_cache(const CacheOptions& options) const override;
  mx::array forward(
      const mx::array& ids,
      const mx::array& features,
      nn::ForwardContext& context,
      const Model& target
  ) const override;

  mx::array go_on(
      const mx::array& ids,
      const mx::array& before,
      nn::ForwardContext& context,
      const Model& target
  ) const override {
    return forward(ids, before, context, target);
  }

  mx::array logits(const mx::array& rows, const Model& target) const override {
    return target.unembed(rows, {});
  }

 private:
  DecoderConfig config_;  // With the head's layers instead of the model's.
  int hidden_;
  nn::Norm token_norm_;
  nn::Norm hidden_norm_;
  nn::Linear join_;
  nn::DecoderStack stack_;
};

// The head in a model's weights, or one that was extracted from them; null: none, or the model's
// kind of head can't be run. `config`: the model's. Its norm weights have the same offset as the
// model's; without a model in `weights`, none. Throws as `MtpHead` and `make_model`.
std::unique_ptr<const MtpHead> make_mtp_head(const Json& config, const nn::Weights& weights);

// Throws kInvalidArgument unless the head fits this target.
void check_target(const MtpHead& head, const ModelInfo& target);

}  // namespace saker::models

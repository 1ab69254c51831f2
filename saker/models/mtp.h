// SPDX-License-Identifier: Apache-2.0
#pragma once

// A head that predicts one token more than its model, as Qwen 3.5's checkpoints bring it under
// "mtp.": the row of position S joins the token at S + 1 with what the model gave at S, and passes
// a decoder layer like the model's own with full attention; the model's head then gives the token
// at S + 2:
//   x = fc [norm(embed(token S + 1)), norm(final normed row S)]
//   y = norm(layers(x)),  logits of S + 2 = head(y)
// Further tokens come from the head itself: the next row takes y in the place of the model's row.
// Immutable. REQUIRES: called on the engine's thread.

#include "saker/base/json.h"
#include "saker/cache/sequence_cache.h"
#include "saker/kernels/mx.h"
#include "saker/models/decoder_config.h"
#include "saker/models/model.h"
#include "saker/nn/decoder_stack.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/linear.h"
#include "saker/nn/rms_norm.h"
#include "saker/nn/weights.h"

#include <memory>
#include <optional>

namespace saker::models {

inline constexpr int kMaxMtpLayers = 64;

// The scope of a head's tensors; none: there is no head.
std::optional<nn::Weights> mtp_scope(const nn::Weights& weights);

class MtpHead {
 public:
  // `config`: of the model that the head belongs to; `weights`: see mtp_scope. Throws kUnsupported
  // for a model without layers of full attention, kCorruptData naming a tensor that is missing or
  // of another shape.
  MtpHead(const DecoderConfig& config, const nn::Weights& weights);

  int hidden_size() const { return hidden_; }

  int vocab_size() const { return config_.vocab_size; }

  // Keeps the rows of the head's own layers.
  cache::SequenceCache make_cache(const CacheOptions& options) const;

  // The next rows of the context's spans: token ids int32 [N] and what the target, or the head
  // itself, gave for the tokens before them [N, hidden] -> normed rows [N, hidden], for the
  // target's head.
  mx::array forward(
      const mx::array& ids,
      const mx::array& before,
      nn::ForwardContext& context,
      const Model& target
  ) const;

 private:
  DecoderConfig config_;  // With the head's layers instead of the model's.
  int hidden_;
  nn::RmsNorm token_norm_;
  nn::RmsNorm hidden_norm_;
  nn::Linear join_;
  nn::DecoderStack stack_;
};

// The head that the weights of a model bring along, or one that was taken out of them; null: none,
// or one of a model whose heads we can't run. `config`: the model's. The weights of its norms are
// kept as the model's are, and whole where there is no model. Throws as `MtpHead` and `make_model`.
std::unique_ptr<const MtpHead> make_mtp_head(const Json& config, const nn::Weights& weights);

// Throws kInvalidArgument unless the head is one for this target.
void check_target(const MtpHead& head, const ModelInfo& target);

}  // namespace saker::models

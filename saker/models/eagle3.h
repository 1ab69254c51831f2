// SPDX-License-Identifier: Apache-2.0
#pragma once

// An EAGLE-3 head. Its input at position S joins the token at S + 1 with hidden states of some of
// the target's layers at S. Its first layer's attention reads both side by side; later layers are a
// llama's:
//   h = fc [taps of row S], x = attention [norm(embed(token S + 1)), norm(h)] + h
//   y = x + mlp(norm(x)),  logits of S + 2 = lm_head(norm(y))
// For further tokens, y takes the place of h. The logits are of a part of the target's vocabulary.
// The embedding may be the target's, and so may the head for the whole vocabulary.

#include "saker/kernels/mx.h"
#include "saker/models/draft_head.h"
#include "saker/models/eagle3_config.h"
#include "saker/models/tensor_rules.h"
#include "saker/nn/attention.h"
#include "saker/nn/embedding.h"
#include "saker/nn/gated_mlp.h"
#include "saker/nn/linear.h"
#include "saker/nn/norm.h"
#include "saker/nn/weights/weights.h"

#include <optional>
#include <vector>

namespace saker::models {

// Renames a head's tensors as `Eagle3Head` expects them: layers by number, without a prefix. Throws
// kCorruptData for a tensor that is there twice, kUnsupported for a folder that has an MTP head too.
TensorMap eagle3_tensors(TensorMap tensors);

class Eagle3Head final : public DraftHead {
 public:
  // `weights`: see eagle3_tensors. Throws as `check_target`, and kCorruptData naming a tensor that
  // is missing or has another shape, or a token out of range.
  Eagle3Head(const Eagle3Config& config, const ModelInfo& target, const nn::Weights& weights);

  const Eagle3Config& config() const { return config_; }

  std::string_view name() const override { return "EAGLE-3 head"; }

  std::vector<int> captured_layers(const ModelInfo& target) const override;
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
  ) const override;
  mx::array logits(const mx::array& rows, const Model& target) const override;

 private:
  struct Layer {
    nn::Norm input_norm;  // In the first layer, for the token.
    nn::Attention attention;
    nn::Norm mlp_norm;
    nn::GatedMlp mlp;
  };

  void check_rows(const mx::array& rows, int width, const mx::array& ids, int count) const;
  // Captured hidden states [N, captured * hidden] -> [N, hidden].
  mx::array fused(const mx::array& features) const;
  mx::array run(const mx::array& embedded, const mx::array& before, nn::ForwardContext& context)
      const;
  mx::array embed(const mx::array& ids, const Model& target) const;

  Eagle3Config config_;
  mx::Dtype row_dtype_;
  std::optional<nn::Linear> fuse_;
  std::optional<nn::Norm> taps_norm_;
  std::vector<nn::Norm> tap_norms_;
  std::optional<nn::Embedding> embedding_;  // None: the target's.
  nn::Norm hidden_norm_;
  std::vector<Layer> layers_;
  nn::Norm final_norm_;
  std::optional<nn::Linear> head_;   // None: the target's.
  std::optional<mx::array> tokens_;  // The token of each logit, int32; none: all tokens in order.
};

// Throws kInvalidArgument unless the head fits this target.
inline void check_target(const Eagle3Head& head, const ModelInfo& target) {
  check_target(head.config(), target);
}

}  // namespace saker::models

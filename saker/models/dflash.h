// SPDX-License-Identifier: Apache-2.0
#pragma once

// A DFlash draft, of either version: drafts a block of tokens in one pass
// (https://arxiv.org/abs/2602.06036). Hidden states of some target layers become keys and values of
// every draft layer, computed once and kept. The block, the last token and masks, uses the target's
// embedding and head. Immutable. REQUIRES: called on the engine's thread.

#include "saker/cache/sequence_cache.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/storage/packed_weight.h"
#include "saker/models/dflash_config.h"
#include "saker/models/model.h"
#include "saker/models/tensor_rules.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/gated_mlp.h"
#include "saker/nn/linear.h"
#include "saker/nn/norm.h"
#include "saker/nn/stack/block_attention.h"
#include "saker/nn/stack/dynamic_conv.h"
#include "saker/nn/weights/weights.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace saker::models {

// DFlash 2: scores the best candidates of a position again, by how well they follow the token
// before:
//   score(c) = logit(c) + sum over r of predecessor[before, r] * hidden[r] * successor[c, r]
class CandidateSelector {
 public:
  CandidateSelector(const nn::Weights& weights, const DflashConfig& config);

  // Final hidden states [n, hidden] -> float32 [n, rank], for `rescore`.
  mx::array project(const mx::array& hidden) const;
  // Replaces a position's logits [vocab_size] by scores of its candidates after the token `before`,
  // and by -infinity for all others. `projected` [rank]: the position's row of `project`.
  void rescore(std::span<float> logits, std::span<const float> projected, std::int32_t before)
      const;

 private:
  int choices_;
  nn::Linear projection_;
  kernels::PackedWeight predecessors_;  // [vocab_size, rank]
  kernels::PackedWeight successors_;
};

// Renames a draft's tensors as `DflashDraft` expects them: without prefixes such as "encoder.", and
// with one name for the context's norm. Throws kUnsupported naming a tensor of a kind of draft that
// we can't run.
TensorMap dflash_tensors(TensorMap tensors);

class DflashDraft {
 public:
  // `weights`: see dflash_tensors. Throws kCorruptData naming a tensor that is missing or has
  // another shape.
  DflashDraft(const DflashConfig& config, const nn::Weights& weights);

  const DflashConfig& config() const { return config_; }

  // For keys and values of context rows.
  cache::SequenceCache make_cache(const CacheOptions& options) const;

  // Adds context rows: features [N, captured * hidden] are the target's hidden states for the next
  // tokens of the context's spans. Writes to their caches. Throws kInvalidArgument for another
  // width, kCapacity without memory; a cache may then have rows in some layers only.
  void remember(const mx::array& features, nn::ForwardContext& context) const;

  // Blocks, one per span: the target's embeddings [N, hidden] -> final normed hidden states [N,
  // hidden]. Appends the blocks' rows to the caches; the caller rolls them back.
  mx::array forward(const mx::array& embedded, nn::ForwardContext& context) const;

  // Final hidden states [n, hidden] -> float32 [n, vocab_size], by the target's head.
  mx::array logits(const mx::array& hidden, const Model& target) const;

  // Null for a DFlash 1 draft.
  const CandidateSelector* selector() const { return selector_ ? &*selector_ : nullptr; }

 private:
  struct Layer {
    nn::Norm attention_norm;
    nn::BlockAttention attention;
    nn::Norm mlp_norm;
    nn::GatedMlp mlp;
    std::optional<nn::DynamicConv> attention_conv;
    std::optional<nn::DynamicConv> mlp_conv;
  };

  static Layer make_layer(
      const nn::Weights& weights,
      const DflashConfig& config,
      int index,
      const std::shared_ptr<const nn::Rope>& rope
  );

  DflashConfig config_;
  nn::Linear fuse_;
  nn::Norm context_norm_;
  std::vector<Layer> layers_;
  nn::Norm final_norm_;
  std::optional<CandidateSelector> selector_;
};

}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Attention of a block that is drafted at once (DFlash, https://arxiv.org/abs/2602.06036). The
// block's tokens attend to context rows and to each other. Context rows come from elsewhere and are
// only stored as keys and values. Immutable.

#include "saker/kernels/mx.h"
#include "saker/nn/attention.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/linear.h"
#include "saker/nn/norm.h"
#include "saker/nn/rope.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>
#include <memory>

namespace saker::nn {

class BlockAttention {
 public:
  // `options.attend.bidirectional`: tokens of the block see later ones too. REQUIRES:
  // options.head_norm, no output gate.
  BlockAttention(
      const Weights& weights, const AttentionOptions& options, std::shared_ptr<const Rope> rope
  );

  struct Rows {
    mx::array keys;    // [N, H_kv, D], normed and rotated.
    mx::array values;  // [N, H_kv, D]
  };

  // The keys and values of x [N, hidden] at the pass's positions.
  Rows rows(const mx::array& x, ForwardContext& context) const;
  // Appends the pass's evaluated rows to the spans' caches of this layer.
  static void remember(const Rows& rows, ForwardContext& context, int layer);

  // Blocks x [N, hidden], one per span -> [N, hidden]. Appends the blocks' rows to the caches of
  // this layer; the caller rolls them back.
  mx::array operator()(const mx::array& x, ForwardContext& context, int layer) const;

  // As above, added to the target.
  kernels::ResidualNorm add_to(
      const ResidualTarget& target, const mx::array& x, ForwardContext& context, int layer
  ) const;

  std::size_t nbytes() const { return query_.nbytes() + key_value_.nbytes() + output_.nbytes(); }

 private:
  // The heads' results, [N, heads * head_dim].
  mx::array attend(const mx::array& x, ForwardContext& context, int layer) const;

  AttentionOptions options_;
  std::shared_ptr<const Rope> rope_;
  Linear query_;
  MergedLinear key_value_;
  Linear output_;
  Norm query_norm_;
  Norm key_norm_;
};

}  // namespace saker::nn

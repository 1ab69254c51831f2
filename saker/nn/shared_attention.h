// SPDX-License-Identifier: Apache-2.0
#pragma once

// Attention to keys and values that an earlier layer of the same pass stored, as in Gemma 4's last
// layers. Its parts are q projection, RMS norm of each head's q, rotation, fused attention over
// that layer's cache, and output projection. Immutable.

#include "saker/kernels/mx.h"
#include "saker/nn/attention.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/linear.h"
#include "saker/nn/norm.h"
#include "saker/nn/rope.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>
#include <memory>
#include <optional>

namespace saker::nn {

class SharedAttention {
 public:
  // `source`: the earlier layer whose rows it attends to; it has equal KV heads, head size and
  // window.
  SharedAttention(
      const Weights& weights,
      const AttentionOptions& options,
      std::shared_ptr<const Rope> rope,
      int source
  );

  // x [N, hidden] -> [N, hidden]. Throws kInternal unless the source ran in this pass.
  mx::array operator()(const mx::array& x, ForwardContext& context, int layer) const;

  // As above, added to the target.
  kernels::ResidualNorm add_to(
      const ResidualTarget& target, const mx::array& x, ForwardContext& context, int layer
  ) const;

  std::size_t nbytes() const { return query_.nbytes() + output_.nbytes(); }

 private:
  // The heads' results, [N, heads * head_dim].
  mx::array attend(const mx::array& x, ForwardContext& context) const;

  AttentionOptions options_;
  std::shared_ptr<const Rope> rope_;
  int source_;
  Linear query_;
  Linear output_;
  std::optional<Norm> norm_;
};

}  // namespace saker::nn

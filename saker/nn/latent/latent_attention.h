// SPDX-License-Identifier: Apache-2.0
#pragma once

// Multi-head latent attention (https://arxiv.org/abs/2405.04434). A token's keys and values of all
// heads are products of one small row, the latent. Only that row is cached, with one rotated key for
// all heads. The products move to the other side: a head's query is multiplied with the transposed
// weight of its keys, and its result with the weight of its values. So all heads attend to one row,
// whose first elements are also the values. Immutable.

#include "saker/kernels/mx.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/latent/latent_weights.h"
#include "saker/nn/linear.h"
#include "saker/nn/norm.h"
#include "saker/nn/rope.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>
#include <memory>
#include <optional>

namespace saker::nn {

class LatentAttention {
 public:
  // Layers with equal rotation share `rope`, which is for heads of rope_dim elements.
  LatentAttention(
      const Weights& weights, const LatentOptions& options, std::shared_ptr<const Rope> rope
  );

  // x [N, hidden] -> [N, hidden]; reserves and fills the rows of this layer's caches. They hold
  // values in keys, see kernels::KvShape.
  mx::array operator()(const mx::array& x, ForwardContext& context, int layer) const;

  // As above, added to the target.
  kernels::ResidualNorm add_to(
      const ResidualTarget& target, const mx::array& x, ForwardContext& context, int layer
  ) const;

  std::size_t nbytes() const;

 private:
  // The heads' results, [N, heads * value_dim].
  mx::array attend(const mx::array& x, ForwardContext& context, int layer) const;
  // The queries over latents, [N, heads, row_dim]. `input`: the first projection of x.
  mx::array queries(const mx::array& input, ForwardContext& context) const;

  LatentOptions options_;
  std::shared_ptr<const Rope> rope_;
  MergedLinear inputs_;  // Queries or their latent, then the latent and the rotating key.
  std::optional<Norm> query_norm_;
  std::optional<Linear> query_;  // From the queries' latent.
  Norm norm_;
  LatentWeights heads_;
  std::optional<Linear> gate_;
  Linear output_;
};

}  // namespace saker::nn

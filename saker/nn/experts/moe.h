// SPDX-License-Identifier: Apache-2.0
#pragma once

// A mixture of experts: a router sends each token to a few MLPs and adds up their results by its
// routing weights (https://arxiv.org/abs/2101.03961). A shared expert may add its result for all
// tokens (https://arxiv.org/abs/2401.06066). Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/experts/experts_block.h"
#include "saker/nn/experts/expert_linear.h"
#include "saker/nn/experts/moe_options.h"
#include "saker/nn/gated_mlp.h"
#include "saker/nn/linear.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>
#include <optional>

namespace saker::nn {

class Moe {
 public:
  Moe(const Weights& weights, const MoeOptions& options);
  // `beside`: the scope around, see SharedExpertOptions.
  Moe(const Weights& weights, const MoeOptions& options, const Weights& beside);

  // x [N, hidden] -> [N, hidden]
  mx::array operator()(const mx::array& x, const RowContext& adapters) const;

  // As above, for a router that reads other rows than the experts.
  mx::array operator()(const mx::array& x, const mx::array& router_rows, const RowContext& adapters)
      const;

  // As the first, added to the target.
  kernels::ResidualNorm add_to(
      const ResidualTarget& target, const mx::array& x, const RowContext& adapters
  ) const;

  // Bytes that one token reads.
  std::size_t nbytes() const;

 private:
  // Router and experts as one operation on x, with the shared expert unless adapters change it;
  // nullopt if the device, adapters or an observer part it.
  std::optional<kernels::ExpertsBlock> block(const mx::array& x, const RowContext& adapters) const;
  // True if the block's result has all that this layer adds.
  bool has_shared(const std::optional<kernels::ExpertsBlock>& whole) const;
  std::optional<kernels::SharedExpert> shared_expert(const RowContext& adapters) const;
  // As the block without the shared expert, one operation after the other.
  mx::array parted(const mx::array& x, const mx::array& router_rows, const RowContext& adapters)
      const;
  mx::array with_shared(const mx::array& routed, const mx::array& x, const RowContext& adapters)
      const;

  MoeOptions options_;
  Linear router_;
  kernels::RouterTensors router_tensors_;
  ExpertLinear inputs_;  // Gates and ups.
  ExpertLinear down_;
  std::optional<GatedMlp> shared_;
  std::optional<Linear> shared_gate_;
  std::optional<Linear> to_latent_;
  std::optional<Linear> from_latent_;
};

}  // namespace saker::nn

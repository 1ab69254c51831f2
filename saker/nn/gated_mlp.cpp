// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/gated_mlp.h"

namespace saker::nn {

GatedMlp::GatedMlp(const Weights& weights, const MlpOptions& options)
    : activation_(options.activation),
      gate_up_(
          {{weights / "gate_proj", options.intermediate},
           {weights / "up_proj", options.intermediate}},
          options.hidden
      ),
      down_(weights / "down_proj", options.intermediate, options.hidden) {}

mx::array GatedMlp::operator()(const mx::array& x, const RowContext& adapters) const {
  return down_(kernels::gated_activation(gate_up_(x, adapters), activation_), adapters);
}

}  // namespace saker::nn

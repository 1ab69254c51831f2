// SPDX-License-Identifier: Apache-2.0
#pragma once

// Somebody who sees the inputs of a pass's linear layers, to measure them. A pass that nobody
// observes pays for one comparison per layer. An observed pass runs the parts of a layer one by
// one, so that each input exists; its results have the same bits (see kernels/ops/blocks.h).

#include "saker/kernels/mx.h"

#include <string_view>
#include <vector>

namespace saker::nn {

// One input of linear layers.
struct LinearInput {
  // Paths of the layers that share it: "model.layers.0.self_attn.q_proj" and so on.
  std::vector<std::string_view> modules;
  const mx::array& rows;  // [N, K], as the layers get it: not rounded to their operands. Lazy.
  // For experts: int32 [N], the expert that gets each row, and the number of experts.
  const mx::array* experts = nullptr;
  int expert_count = 1;
};

class InputObserver {
 public:
  InputObserver() = default;
  InputObserver(const InputObserver&) = delete;
  InputObserver& operator=(const InputObserver&) = delete;
  virtual ~InputObserver() = default;

  // Called while the pass is built, on the engine's thread, before the layers' products. May
  // evaluate the arrays. An exception ends the pass.
  virtual void observe(const LinearInput& input) = 0;
};

}  // namespace saker::nn

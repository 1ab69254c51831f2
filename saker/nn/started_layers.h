// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layers of a pass that are computed while later ones are built. Used on the engine's thread.

#include "saker/kernels/mx.h"

#include <cstddef>
#include <vector>

namespace saker::nn {

class StartedLayers {
 public:
  StartedLayers() = default;
  StartedLayers(StartedLayers&&) noexcept = default;
  StartedLayers& operator=(StartedLayers&&) = delete;
  StartedLayers(const StartedLayers&) = delete;
  StartedLayers& operator=(const StartedLayers&) = delete;
  // Waits for all: what runs writes rows of caches, which a pass that failed gives back next. Says
  // nothing of those that failed.
  ~StartedLayers();

  // Begins to compute a layer's results, `normed` the last of them.
  void start(const mx::array& sum, const mx::array& normed);
  // Waits until at most `count` layers are left that may still run. Throws what a layer threw.
  void wait_until(std::size_t count);

 private:
  std::vector<mx::array> running_;  // The last result of each.
};

}  // namespace saker::nn

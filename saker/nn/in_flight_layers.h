// SPDX-License-Identifier: Apache-2.0
#pragma once

// Layers of a pass that are computed while later ones are built. Used on the engine's thread.

#include "saker/kernels/mx.h"

#include <cstddef>
#include <vector>

namespace saker::nn {

class InFlightLayers {
 public:
  InFlightLayers() = default;
  InFlightLayers(InFlightLayers&&) noexcept = default;
  InFlightLayers& operator=(InFlightLayers&&) = delete;
  InFlightLayers(const InFlightLayers&) = delete;
  InFlightLayers& operator=(const InFlightLayers&) = delete;
  // Waits for all: what runs writes rows of caches, which a pass that failed gives back next. Says
  // nothing of those that failed.
  ~InFlightLayers();

  // Begins to compute a layer's results, `normed` the last of them.
  void start(const mx::array& sum, const mx::array& normed);
  // Waits until at most `count` layers are left that may still run. Throws what a layer threw.
  void wait_until(std::size_t count);

 private:
  std::vector<mx::array> running_;  // The last result of each.
};

}  // namespace saker::nn

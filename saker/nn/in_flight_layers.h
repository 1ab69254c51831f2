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
  // Waits for all: running layers write cache rows, which a failed pass frees next. Ignores their
  // errors.
  ~InFlightLayers();

  // Starts to compute a layer's results; `normed` is the last one.
  void start(const mx::array& sum, const mx::array& normed);
  // Waits until at most `count` layers may still run. Throws the error of a layer.
  void wait_until(std::size_t count);

 private:
  std::vector<mx::array> running_;  // The last result of each layer.
};

}  // namespace saker::nn

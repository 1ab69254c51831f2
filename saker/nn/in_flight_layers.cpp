// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/in_flight_layers.h"

#include <exception>

namespace saker::nn {

InFlightLayers::~InFlightLayers() {
  while (!running_.empty()) {
    mx::array layer = running_.back();
    running_.pop_back();
    try {
      layer.wait();
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
      // Evaluating the pass has already reported the error.
    }
  }
}

void InFlightLayers::start(const mx::array& sum, const mx::array& normed) {
  mx::async_eval(sum, normed);
  running_.push_back(normed);
}

void InFlightLayers::wait_until(std::size_t count) {
  while (running_.size() > count) {
    running_.front().wait();
    running_.erase(running_.begin());
  }
}

}  // namespace saker::nn

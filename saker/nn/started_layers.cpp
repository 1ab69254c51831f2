// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/started_layers.h"

namespace saker::nn {

StartedLayers::~StartedLayers() {
  wait_until(0);
}

void StartedLayers::start(const mx::array& sum, const mx::array& normed) {
  mx::async_eval(sum, normed);
  running_.push_back(normed);
}

void StartedLayers::wait_until(std::size_t count) {
  while (running_.size() > count) {
    running_.front().wait();
    running_.erase(running_.begin());
  }
}

}  // namespace saker::nn

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Says if a model's thread hangs. It reads a clock and waits for nobody, so that /health answers
// whatever the model does.

#include <functional>
#include <utility>

namespace saker::server {

class Watchdog {
 public:
  // `busy_seconds`: for how long the present pass runs, 0 without one. `bound_s`: a pass that takes
  // longer hangs; 0: none does.
  Watchdog(std::function<double()> busy_seconds, int bound_s)
      : busy_seconds_(std::move(busy_seconds)), bound_s_(bound_s) {}

  // Seconds of a pass that hangs; 0: all is well.
  double hangs_for() const {
    const double busy = bound_s_ > 0 ? busy_seconds_() : 0.0;
    return busy > bound_s_ ? busy : 0.0;
  }

 private:
  std::function<double()> busy_seconds_;
  int bound_s_;
};

}  // namespace saker::server

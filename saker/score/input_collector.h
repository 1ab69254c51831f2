// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adds up the squares of all inputs of linear layers that it observes.
//
// Sums are float64, over rows in their order. So they do not depend on passes, threads or the rows
// beside them. REQUIRES: used on the thread that owns MLX.

#include "saker/nn/input_observer.h"
#include "saker/score/input_squares.h"

#include <map>
#include <memory>
#include <string>

namespace saker::score {

class InputCollector final : public nn::InputObserver {
 public:
  // Evaluates the rows and adds them. Memory: one input as float32 besides the sums. Throws
  // kInternal if a module's input changes its shape.
  void observe(const nn::LinearInput& input) override;

  // Throws kCorruptData naming a module that got a number that is not finite.
  InputSquaresByModule result() const;

 private:
  InputSquares& squares_of(const nn::LinearInput& input, int columns);

  std::map<std::string, std::shared_ptr<InputSquares>, std::less<>> modules_;
};

}  // namespace saker::score

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Sums of squares of the inputs of linear layers, by column: llama.cpp's importance matrix
// (https://github.com/ggml-org/llama.cpp/pull/4861). They say how much an error in a weight's column
// costs. Plain data; no MLX.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace saker::score {

// The squares of one input of linear layers.
struct InputSquares {
  int columns = 0;
  std::vector<double> sums;          // [experts, columns]; one expert for other layers.
  std::vector<std::int64_t> counts;  // [experts]: rows that were added.
};

// By path of the module. Modules with a common input (q, k and v) share an object.
using InputSquaresByModule =
    std::map<std::string, std::shared_ptr<const InputSquares>, std::less<>>;

}  // namespace saker::score

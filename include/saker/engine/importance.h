// SPDX-License-Identifier: Apache-2.0
#pragma once

// A text that shows which inputs of a model's linear layers are large, as a request. Plain values;
// no MLX.

#include "saker/score/input_squares.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace saker::engine {

// The text's tokens and how they are cut. Last ones that do not fill a chunk are left out.
struct ImportanceRequest {
  std::vector<std::int32_t> tokens;
  int chunk = 512;  // Tokens that run together, at most the model's context.
  int chunks = 0;   // Most chunks, from the text's beginning; 0: all.
  // Replaces the first token of each chunk.
  std::optional<std::int32_t> first_token = std::nullopt;
  bool head = false;  // The inputs of the model's head, too.
  // Chunks. May throw, which ends the work; called on the engine's thread.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

}  // namespace saker::engine

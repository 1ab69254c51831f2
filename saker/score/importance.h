// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a text through a model and gathers the squares of all linear layers' inputs. The text is cut
// into chunks of equal size; each begins with an empty cache. Last tokens that do not fill a chunk
// are left out, as in llama.cpp's imatrix. REQUIRES: called on the thread that owns MLX.

#include "saker/models/model.h"
#include "saker/score/input_squares.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace saker::score {

struct ImportanceOptions {
  int chunk = 512;  // Tokens of a chunk, at most the model's context.
  int chunks = 0;   // Most chunks to run, from the text's beginning; 0: all.
  // Replaces the first token of each chunk: the model saw it at the beginning of all texts.
  std::optional<std::int32_t> first_token = std::nullopt;
  bool head = false;  // The head's input, too.
  // Called before each pass: the thread may do other work then. Returns the tokens that the pass may
  // have.
  std::function<int()> before_pass = {};
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};  // Chunks.
};

struct Importance {
  InputSquaresByModule modules;
  std::int64_t chunks = 0;
};

// The number of chunks that `measure_importance` runs. Throws kInvalidArgument for options out of
// range, and for a text that does not fill one chunk.
std::int64_t importance_chunks(
    const models::ModelInfo& info, std::int64_t tokens, const ImportanceOptions& options
);

// Throws as `importance_chunks`, kInvalidArgument for ids out of range, kCorruptData if a layer's
// input is not finite, and what passes throw.
Importance measure_importance(
    const models::Model& model,
    std::span<const std::int32_t> tokens,
    const ImportanceOptions& options
);

}  // namespace saker::score

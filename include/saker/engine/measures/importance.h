// SPDX-License-Identifier: Apache-2.0
#pragma once

// Importance matrices as files, in llama.cpp's form. A conversion to few bits rounds weights with
// more care if their inputs are large. Threading: any thread but the engine's.

#include "saker/engine/engine.h"
#include "saker/engine/importance.h"

#include <cstdint>
#include <filesystem>
#include <string>

namespace saker::engine {

// Where the matrix goes.
struct ImportanceTarget {
  std::filesystem::path path;
  std::string dataset = {};  // The text's name, which the file keeps.
};

// Counts of a written matrix.
struct ImportanceReport {
  std::int64_t chunks = 0;
  std::int64_t tokens = 0;   // The sum over these chunks.
  std::int64_t entries = 0;  // Weights with sums.
  // Experts that no token chose, of all experts of all weights. Conversion treats their columns
  // alike.
  std::int64_t unseen_experts = 0;
  std::int64_t experts = 0;  // 0: the model has none.
  double seconds = 0.0;
};

// Measures and writes. A text that begins with the tokenizer's first token repeats it at the
// beginning of each chunk, unless `request` names a first token. Throws as Engine::input_squares and
// writing a file do; kNotFound at once if the folder takes no file.
ImportanceReport write_importance(
    Engine& engine, ImportanceRequest request, const ImportanceTarget& target
);

}  // namespace saker::engine

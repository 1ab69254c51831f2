// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rows of a GGUF file's tensor in the order of a model folder. Pure; any thread.

#include "saker/base/mapped_file.h"
#include "saker/load/gguf/gguf_file.h"
#include "saker/load/gguf/gguf_tensor_role.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace saker::load::gguf {

struct FileRows {
  TensorType type;
  std::size_t count;  // Values per row.
  std::size_t bytes;
  const std::byte* data;
  std::shared_ptr<const MappedFile> mapped;  // Keeps `data` alive.
  std::function<std::int64_t(std::int64_t)> order;
  ValueHeads columns;

  const std::byte* at(std::int64_t row) const {
    return data + static_cast<std::size_t>(order(row)) * bytes;
  }

  // Moves the columns of a row's codes, scales or numbers.
  void move_columns(std::byte* row, std::size_t size) const;
};

// The folder's shape, besides a last dimension of 1. REQUIRES: check_heads().
std::vector<std::int64_t> shape_of(const TensorEntry& entry, const TensorRole& role);

// Number of the folder's rows; a vector whose heads move has one row per number.
std::int64_t rows_of(const TensorEntry& entry, const TensorRole& role);

// The file's row for each of the folder's. REQUIRES: check_heads().
std::function<std::int64_t(std::int64_t)> row_order(
    const TensorEntry& entry, const TensorRole& role
);

// Heads that move are all there, parts are equal, and rows of single numbers are no blocks. Throws
// kCorruptData with `what`, the file.
void check_heads(const TensorEntry& entry, const TensorRole& role, std::string_view what);

// True if groups of so many columns can move with their heads.
bool heads_are_whole(const TensorRole& role, std::int64_t group);

// x of -exp(x). Throws kCorruptData with `name` for other numbers than that has.
float log_of_decay(float value, std::string_view name);

}  // namespace saker::load::gguf

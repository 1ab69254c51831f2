// SPDX-License-Identifier: Apache-2.0
#pragma once

// The place of a GGUF file's tensor in a model folder, and what differs there. Pure; any thread.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace saker::load::gguf {

// The value heads of linear attention. Head h of a folder belongs to key head h / repeats, that of
// a file to key head h % key_heads.
struct ValueHeads {
  int key_heads = 0;       // 0: the order is the same.
  int repeats = 0;         // Value heads for each key head.
  std::int64_t first = 0;  // Rows or columns before those of the first head,
  std::int64_t size = 0;   // and of each.

  bool moves() const { return key_heads != 0; }

  std::int64_t total() const { return first + std::int64_t{key_heads} * repeats * size; }

  // The file's row for one of the folder's.
  std::int64_t file_row(std::int64_t row) const;

  // Brings a file's row into the folder's order. REQUIRES: `first` is 0, the heads' bytes are equal
  // parts of `row`.
  void move_columns(std::span<std::byte> row, std::vector<std::byte>& scratch) const;
};

struct TensorRole {
  std::string name;
  int rotated_heads = 0;     // Its rows are this many heads' rows, in the order of rotated pairs.
  bool plus_one = false;     // A norm's factors; the folder holds them less 1.
  bool is_decay = false;     // -exp(x) of the folder's x.
  bool ends_in_one = false;  // The folder has [rows, columns, 1].
  bool is_flat = false;      // The folder has one dimension.
  bool is_row = false;       // The folder has a first dimension of 1, which files may lack.
  ValueHeads rows = {};
  ValueHeads columns = {};
  // Each item of the file's tensor has the rows of several of the folder's, one behind the other.
  int part = 0;
  int parts = 1;

  bool moves_rows() const { return rotated_heads != 0 || rows.moves() || parts > 1; }
};

}  // namespace saker::load::gguf

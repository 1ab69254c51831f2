// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_rows.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/files/safetensors.h"

#include <cmath>
#include <vector>

namespace saker::load::gguf {

void FileRows::move_columns(std::byte* row, std::size_t size) const {
  if (columns.moves()) {
    std::vector<std::byte> scratch;
    columns.move_columns({row, size}, scratch);
  }
}

std::vector<std::int64_t> shape_of(const TensorEntry& entry, const TensorRole& role) {
  auto shape = entry.shape;
  if (role.parts > 1) {
    shape[1] /= role.parts;
  }
  if (role.is_row && shape.size() == 1) {
    shape.insert(shape.begin(), 1);
  }
  return shape;
}

std::int64_t rows_of(const TensorEntry& entry, const TensorRole& role) {
  const bool is_row = entry.shape.size() == 1 && !role.moves_rows();
  return is_row                    ? 1
         : entry.shape.size() == 1 ? entry.shape.front()
                                   : entry.element_count / entry.shape.back() / role.parts;
}

std::function<std::int64_t(std::int64_t)> row_order(
    const TensorEntry& entry, const TensorRole& role
) {
  if (role.rows.moves()) {
    // All rows of an outer dimension belong to the same head.
    const std::int64_t inner = rows_of(entry, role) / entry.shape.front();
    return [heads = role.rows, inner](std::int64_t row) {
      return heads.file_row(row / inner) * inner + row % inner;
    };
  }
  if (role.parts > 1) {
    const std::int64_t all = entry.shape[1];
    const std::int64_t own = all / role.parts;
    return [all, own, first = role.part * own](std::int64_t row) {
      return row / own * all + first + row % own;
    };
  }
  if (role.rotated_heads == 0) {
    return [](std::int64_t row) { return row; };
  }
  // Rotated pairs are adjacent in the file, and half a head apart in the folder.
  const std::int64_t head = entry.shape.front() / role.rotated_heads;
  return [head](std::int64_t row) {
    const std::int64_t in_head = row % head;
    return row - in_head + in_head % (head / 2) * 2 + in_head / (head / 2);
  };
}

void check_heads(const TensorEntry& entry, const TensorRole& role, std::string_view what) {
  require(
      role.parts == 1 || (entry.shape.size() == 3 && entry.shape[1] % role.parts == 0),
      ErrorCode::kCorruptData,
      "{}: tensor {} is {}, expected three dimensions and rows in {} equal parts",
      what,
      quote(entry.name),
      shape_text(entry.shape),
      role.parts
  );
  require(
      role.rotated_heads == 0 || entry.shape.front() % (std::int64_t{2} * role.rotated_heads) == 0,
      ErrorCode::kCorruptData,
      "{}: tensor {} has {} rows, expected a multiple of 2 for each of {} heads",
      what,
      quote(entry.name),
      entry.shape.front(),
      role.rotated_heads
  );
  const auto expect_total = [&](const ValueHeads& heads, std::int64_t size, std::string_view of) {
    require(
        !heads.moves() || size == heads.total(),
        ErrorCode::kCorruptData,
        "{}: tensor {} has {} {}, expected {} for {} value heads",
        what,
        quote(entry.name),
        size,
        of,
        heads.total(),
        std::int64_t{heads.key_heads} * heads.repeats
    );
  };
  expect_total(role.rows, entry.shape.front(), "rows");
  expect_total(role.columns, entry.shape.back(), "columns");
  require(
      entry.shape.size() > 1 || !role.moves_rows() || plain_dtype(entry.type),
      ErrorCode::kCorruptData,
      "{}: tensor {} is {}, expected plain numbers",
      what,
      quote(entry.name),
      facts_of(entry.type).name
  );
}

bool heads_are_whole(const TensorRole& role, std::int64_t group) {
  return !role.columns.moves() || role.columns.size % group == 0;
}

float log_of_decay(float value, std::string_view name) {
  require(
      value < 0.0F && std::isfinite(value),
      ErrorCode::kCorruptData,
      "{} has {}, expected finite numbers below 0",
      name,
      value
  );
  return std::log(-value);
}

}  // namespace saker::load::gguf

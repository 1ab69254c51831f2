// SPDX-License-Identifier: Apache-2.0
#pragma once

// One tensor of a GGUF file to write, and its rows as blocks.

#include "saker/load/convert/tensor_steps.h"
#include "saker/load/export/file_tensors.h"
#include "saker/load/gguf/blocks/gguf_types.h"
#include "saker/load/importers/placeholder_tensors.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace saker::load::gguf {

struct ExportTensor {
  FileTensor file;
  std::vector<std::int64_t> shape;  // In the file.
  TensorStep step;                  // Reads the folder's tensor; without parts: `values`.
  std::vector<float> values;
  TensorType type = TensorType::kFloat32;
  std::vector<float> importance = {};  // [experts, columns], or empty.

  std::int64_t elements() const;
  // A vector whose heads move has one row per number.
  std::int64_t columns() const;

  std::int64_t rows() const { return elements() / columns(); }

  std::size_t row_bytes() const;
  // A weight per column; empty without an importance matrix.
  std::span<const float> importance_of(std::int64_t row) const;
};

// Encodes rows of one tensor. Threading: one thread each.
class RowEncoder {
 public:
  // `made` as for StepValues. REQUIRES: both outlive it.
  RowEncoder(const ExportTensor& tensor, const importers::PlaceholderTensors* made);

  // Writes the file's row, row_bytes(). Throws kCorruptData for weights that are not finite,
  // kInvalidArgument for those that the type cannot hold.
  void encode(std::int64_t row, std::byte* to);

 private:
  void read(std::int64_t row);

  const ExportTensor& tensor_;
  const importers::PlaceholderTensors* made_;
  std::function<std::int64_t(std::int64_t)> order_;
  ValueHeads columns_;
  std::vector<float> row_;
  std::vector<std::byte> scratch_;
};

}  // namespace saker::load::gguf

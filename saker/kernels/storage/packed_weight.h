// SPDX-License-Identifier: Apache-2.0
#pragma once

// The weight of a linear layer or embedding, [N, K] (N outputs, K inputs), in the form that the
// device multiplies fastest.
//
// On CPU, rows are interleaved by 16, so that 16 outputs fill vector lanes, or lie as matrix tiles
// load them (PackedOrder). In both orders each output adds its products in one fixed order of k,
// for any number of input rows. So a row's bits never depend on the rows beside it.
//
// Packing reads the checkpoint's bytes once, in parallel, and releases the mapped pages. Weights in
// bf16 that tiles can read stay where the checkpoint has them (docs/adr/0016). On a GPU the arrays
// keep MLX's layout. Immutable after packing; copies share the memory; safe to use from any thread.

#include "saker/kernels/layout/weight_format.h"
#include "saker/kernels/mx.h"

#include <memory>
#include <vector>

namespace saker::kernels {

class PackedWeight {
 public:
  // The data that the device's kernels read. Not for callers.
  struct Storage;

  // Packs one or more layers with equal K and format into one weight whose rows follow each other
  // (for q, k and v, or gate and up). Throws kCorruptData when shapes and format disagree.
  static PackedWeight pack(const std::vector<WeightTensors>& parts, const WeightFormat& format);

  int rows() const { return rows_; }  // N

  int columns() const { return columns_; }  // K

  const WeightFormat& format() const { return format_; }

  // Bytes that one product reads.
  std::size_t nbytes() const;
  // The whole weight in float32, [N, K]: for references and small models.
  mx::array dequantized() const;
  // Rows [first, first + count) of the weight in float32.
  mx::array dequantized_rows(int first, int count) const;

  const Storage& storage() const { return *storage_; }

  std::shared_ptr<const Storage> shared_storage() const { return storage_; }

 private:
  PackedWeight(
      int rows, int columns, const WeightFormat& format, std::shared_ptr<const Storage> storage
  );

  int rows_;
  int columns_;
  WeightFormat format_;
  std::shared_ptr<const Storage> storage_;
};

}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of pages as MLX's codes: the affine layout of mx::quantize (mlx/ops.h), which prompt-cache
// files use. Host memory only. Threading: as KvStore.

#include "saker/kernels/mx.h"
#include "saker/kernels/storage/kv_codes.h"
#include "saker/kernels/storage/kv_pages.h"
#include "saker/kernels/storage/kv_store.h"

#include <cstdint>

namespace saker::kernels {

// Positions [first, first + count).
struct RowRange {
  std::int64_t first = 0;
  int count = 0;
};

// An evaluated, contiguous float32 copy of `rows`.
mx::array contiguous_float32(const mx::array& rows);

// Reads rows in MLX's layout: the pages' codes where their groups are MLX's, else quantized anew.
// Scales and biases are of `dtype`. Throws kUnsupported unless the dimension is a multiple of 32,
// kInternal for rows that are gone.
QuantizedRows read_coded_rows(
    const KvPages& pages, CodeSide which, const RowRange& range, mx::Dtype dtype
);

// Writes rows that are codes, from position `first` on. Throws kInvalidArgument unless bits, groups
// and shapes are the pages'. REQUIRES: the rows were prepared.
void write_coded_rows(
    const KvPages& pages, CodeSide which, std::int64_t first, const QuantizedRows& rows
);

}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#pragma once

// What an adapter changes in the output y [M, N] of a linear layer of x [M, K], row by row:
//
//   y += strength * (scales * z + gains * y + offsets),   z = up(down(x))
//
// with scales, gains and offsets per output. LoRA has scales only; weight-decomposed LoRA scales
// the whole output too, so has gains; a replaced weight is `up` alone with gains of -1. Products
// are those of linear.h, and everything else is done element by element in this order, so that a
// row's bits do not depend on the rows beside it. Rows that are not named keep their bits.

#include "saker/kernels/mx.h"
#include "saker/kernels/packed_weight.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace saker::kernels {

struct AdapterDelta {
  // Each may be absent: then it changes nothing. Immutable once in use.
  std::optional<PackedWeight> down;  // [R, K]
  std::optional<PackedWeight> up;    // [N, R]; [N, K] without `down`.
  // Of an embedding: row `id` is what `down` gives elsewhere. [V, R]
  std::optional<PackedWeight> table;
  std::vector<float> scales;   // [N], or empty: zeros, and no weights.
  std::vector<float> gains;    // [N], or empty: zeros.
  std::vector<float> offsets;  // [N], or empty: zeros.

  int outputs() const;  // N
  std::size_t nbytes() const;
};

// Different rows of a pass and the strength of each.
struct RowStrengths {
  std::vector<int> rows;
  std::vector<float> strengths;
};

// A change of columns [first_column, first_column + N) of y.
struct ChangedColumns {
  std::shared_ptr<const AdapterDelta> change;
  std::shared_ptr<const RowStrengths> rows;
  int first_column = 0;
};

// y [M, N] and x [M, K] -> y changed; the changes apply one after the other.
mx::array change_output(
    const mx::array& y, const mx::array& x, const std::vector<ChangedColumns>& changes
);

// The same from plain MLX operations: the truth in tests, the path without own bodies.
mx::array change_output_reference(
    const mx::array& y, const mx::array& x, const std::vector<ChangedColumns>& changes
);

}  // namespace saker::kernels

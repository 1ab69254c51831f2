// SPDX-License-Identifier: Apache-2.0
#pragma once

// How an adapter changes the output y [M, N] of a linear layer with input x [M, K], row by row:
//
//   y += strength * (scales * z + gains * y + offsets),   z = up(down(x))
//
// scales, gains and offsets have one value per output. LoRA has scales only. Weight-decomposed LoRA
// scales the whole output too, so it has gains. A replaced weight is `up` alone with gains of -1.
//
// Products are those of linear.h. Everything else runs element by element in this order, so a row's
// bits do not depend on the rows beside it. Rows that are not named keep their bits.

#include "saker/kernels/mx.h"
#include "saker/kernels/storage/packed_weight.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace saker::kernels {

struct AdapterDelta {
  // Each member may be absent: it then changes nothing. Immutable once in use.
  std::optional<PackedWeight> down;  // [R, K]
  std::optional<PackedWeight> up;    // [N, R]; [N, K] without `down`.
  // For an embedding, in place of `down`: its output for token id `id` is row `id`. [V, R]
  std::optional<PackedWeight> table;
  std::vector<float> scales;   // [N]; empty: zeros, without `up` and `down`.
  std::vector<float> gains;    // [N]; empty: zeros.
  std::vector<float> offsets;  // [N]; empty: zeros.

  int outputs() const;  // N
  std::size_t nbytes() const;
};

// Distinct rows of a pass, with the strength of each.
struct RowStrengths {
  std::vector<int> rows;
  std::vector<float> strengths;
};

// A delta for columns [first_column, first_column + N) of y.
struct ChangedColumns {
  std::shared_ptr<const AdapterDelta> change;
  std::shared_ptr<const RowStrengths> rows;
  int first_column = 0;
};

// Applies the changes to y [M, N], one after the other. x is [M, K].
mx::array change_output(
    const mx::array& y, const mx::array& x, const std::vector<ChangedColumns>& changes
);

// As change_output, from plain MLX operations: the reference in tests, and the path on devices
// without our bodies.
mx::array change_output_reference(
    const mx::array& y, const mx::array& x, const std::vector<ChangedColumns>& changes
);

}  // namespace saker::kernels

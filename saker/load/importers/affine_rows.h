// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared code of importers that convert other tools' integers to MLX's affine layout: groups with
// one scale, destinations of rows, a row's scales and biases.

#include "saker/kernels/quantize/quantize_loops.h"
#include "saker/load/importers/lazy_tensor.h"
#include "saker/load/importers/module_parts.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace saker::load::importers {

// The groups of a module, and the MLX groups that they are cut into.
struct Groups {
  std::size_t count = 0;   // The tool's groups per row.
  std::size_t repeat = 1;  // MLX's groups in each of them.
  int size = 0;            // Columns of an MLX group.
};

// Throws kCorruptData if the groups don't divide the columns, kUnsupported for sizes that no MLX
// group divides.
Groups cut_groups(const ModuleParts& parts, std::int64_t columns, std::int64_t groups);

// Weight with `words` words per row, scales and biases.
LazyTensor affine_outputs(
    const std::string& path, std::int64_t rows, std::int64_t words, std::int64_t groups, DType dtype
);

// Destinations of rows [first, first + count) of a module; each may be null.
struct Places {
  std::byte* codes = nullptr;
  std::byte* scales = nullptr;
  std::byte* biases = nullptr;

  explicit Places(std::span<std::byte* const> to) : codes(to[0]), scales(to[1]), biases(to[2]) {}

  bool has_scales() const { return scales != nullptr || biases != nullptr; }
};

inline std::byte* row_at(std::byte* place, std::size_t row, std::size_t bytes) {
  return place != nullptr ? place + row * bytes : nullptr;
}

// Scales and biases of one row in MLX's groups. `scale` and `zero` are values of one group of the
// tool.
class RowScales {
 public:
  RowScales(std::string path, const Groups& groups, DType dtype)
      : path_(std::move(path)), groups_(groups), dtype_(dtype) {}

  std::size_t bytes() const { return groups_.count * groups_.repeat * dtype_size(dtype_); }

  template <typename Scale, typename Zero>
  void write(const Scale& scale, const Zero& zero, std::byte* scales, std::byte* biases) const {
    const std::size_t count = groups_.count * groups_.repeat;
    std::vector<float> values(2 * count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = scale(i / groups_.repeat);
      values[count + i] = -static_cast<float>(zero(i / groups_.repeat)) * values[i];
    }
    const kernels::QuantizeLoops& loops = kernels::quantize_loops();
    std::vector<std::byte> rounded(count * dtype_size(dtype_));
    loops.narrow(values.data() + count, dtype_, count, rounded.data());
    loops.widen(rounded.data(), dtype_, count, values.data() + count);
    if (scales != nullptr) {
      loops.narrow(values.data(), dtype_, count, scales);
    }
    if (biases != nullptr) {
      std::memcpy(biases, rounded.data(), rounded.size());
    }
    const auto wrong =
        std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
    if (wrong != values.end()) {
      refuse(*wrong);
    }
  }

 private:
  [[noreturn]] void refuse(float value) const;

  std::string path_;
  Groups groups_;
  DType dtype_;
};

}  // namespace saker::load::importers

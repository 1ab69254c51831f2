// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows that go into operations, and results as plain numbers.

#include "saker/kernels/mx.h"

#include <cstdint>
#include <vector>

namespace saker::kernels {

// The array's elements, which are of type T.
template <typename T = float>
std::vector<T> to_vector(mx::array array) {
  array = mx::contiguous(array);
  mx::eval(array);
  return {array.data<T>(), array.data<T>() + array.size()};
}

// Standard normal numbers [rows, columns].
inline mx::array random_rows(int rows, int columns, std::uint64_t seed) {
  return mx::random::normal({rows, columns}, mx::float32, mx::random::key(seed));
}

}  // namespace saker::kernels

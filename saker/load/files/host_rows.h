// SPDX-License-Identifier: Apache-2.0
#pragma once

// Integers and rows of tensors in host memory, for cache files.

#include "saker/base/tensor.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace saker::load {

// The elements of an integer or boolean tensor; empty for other dtypes and numbers beyond 64 bits.
std::optional<std::vector<std::int64_t>> to_integers(const Tensor& tensor);
Tensor int32_tensor(std::vector<std::int64_t> shape, std::span<const std::int64_t> values);
Tensor bool_tensor(bool value);  // 0-d.

// The first `count` entries of axis 2 of a tensor of rank 4. A copy, unless these are all.
Tensor first_rows(const Tensor& tensor, std::int64_t count);

}  // namespace saker::load

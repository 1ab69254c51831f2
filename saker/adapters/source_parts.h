// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the readers of both forms share.

#include "saker/adapters/adapter_source.h"
#include "saker/load/safetensors.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace saker::adapters {

// Tensors and configuration of a folder.
struct AdapterFiles {
  std::string where;  // The weights' file, for messages.
  load::TensorMap tensors;
  Json config;
};

// A tensor with `dimensions` dimensions, none of them 0, and finite float values; in float32 unless
// the file holds float32, bf16 or float16. Throws kCorruptData naming it.
Tensor checked_tensor(const std::string& name, const Tensor& tensor, std::size_t dimensions);

Tensor float_tensor(std::vector<std::int64_t> shape, std::vector<float> values);

// Rows [first, first + count) of a tensor, in its memory.
Tensor rows_of(const Tensor& tensor, std::int64_t first, std::int64_t count);

// [M, N] -> [N, M], in memory of its own.
Tensor transposed(const Tensor& matrix);

// Throws kCorruptData unless both halves are there and share a rank.
void check_low_rank(const std::string& name, const LowRank& low_rank);

AdapterSource read_mlx(AdapterFiles files);
AdapterSource read_peft(AdapterFiles files);

}  // namespace saker::adapters

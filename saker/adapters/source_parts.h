// SPDX-License-Identifier: Apache-2.0
#pragma once

// Shared code of the readers of all forms.

#include "saker/adapters/adapter_source.h"
#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/files/safetensors.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace saker::adapters {

// Returns make(). Errors get the folder's or file's name in front, unless they begin with it: a
// program may have several adapters.
template <typename Make>
auto naming_folder(const std::filesystem::path& dir, Make make) {
  try {
    return make();
  } catch (const Error& error) {
    const std::string_view message = error.what();
    const std::string where = quote_path(dir);
    if (dir.empty() || message.starts_with(dir.native()) || message.starts_with(where)) {
      throw;
    }
    throw Error(error.code(), fmt::format("{}: {}", where, message), error.where());
  }
}

// Tensors and configuration of a folder.
struct AdapterFiles {
  std::string where;    // The weights' file, for messages.
  bool former = false;  // mlx-lm's former file; its scale is multiplied by alpha / rank.
  load::TensorMap tensors;
  Json config;
};

// Converts float64 to float32; returns others unchanged.
Tensor narrowed(const Tensor& tensor);

// Checks for `dimensions` dimensions, none of them 0, and finite float values. Returns float32
// unless the file holds bf16 or float16. Throws kCorruptData, naming the tensor.
Tensor checked_tensor(const std::string& name, const Tensor& tensor, std::size_t dimensions);

Tensor float_tensor(std::vector<std::int64_t> shape, std::vector<float> values);

// Rows [first, first + count) of a tensor; shares its memory.
Tensor rows_of(const Tensor& tensor, std::int64_t first, std::int64_t count);

// [M, N] -> [N, M], in new memory.
Tensor transposed(const Tensor& matrix);

// Throws kCorruptData unless both matrices are there and share a rank.
void check_low_rank(const std::string& name, const LowRank& low_rank);

AdapterSource read_mlx(AdapterFiles files);
AdapterSource read_peft(AdapterFiles files);
// Throws as read_adapter does.
AdapterSource read_gguf_adapter(const std::filesystem::path& file);

}  // namespace saker::adapters

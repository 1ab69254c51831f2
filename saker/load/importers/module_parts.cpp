// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/module_parts.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/kernels/quantize/quantize_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace saker::load::importers {

const Tensor* ModuleParts::find(std::string_view leaf) const {
  const auto found = tensors_.find(fmt::format("{}.{}", path_, leaf));
  return found != tensors_.end() ? &found->second : nullptr;
}

const Tensor& ModuleParts::at(std::string_view leaf) const {
  const Tensor* tensor = find(leaf);
  require(
      tensor != nullptr,
      ErrorCode::kCorruptData,
      "tensor {} is missing beside the module's other parts",
      quote(fmt::format("{}.{}", path_, leaf))
  );
  return *tensor;
}

const Tensor& ModuleParts::at(
    std::string_view leaf,
    std::initializer_list<DType> dtypes,
    const std::vector<std::int64_t>& shape
) const {
  const Tensor& tensor = at(leaf);
  check_dtype(leaf, tensor, dtypes);
  if (tensor.shape != shape) {
    refuse(leaf, tensor, shape_text(shape));
  }
  return tensor;
}

const Tensor& ModuleParts::matrix(std::string_view leaf, std::initializer_list<DType> dtypes)
    const {
  const Tensor& tensor = at(leaf);
  check_dtype(leaf, tensor, dtypes);
  if (tensor.shape.size() != 2 || tensor.element_count() == 0) {
    refuse(leaf, tensor, "a matrix");
  }
  return tensor;
}

void ModuleParts::check_dtype(
    std::string_view leaf, const Tensor& tensor, std::initializer_list<DType> dtypes
) const {
  if (std::ranges::find(dtypes, tensor.dtype) == dtypes.end()) {
    std::string names;
    for (const DType dtype : dtypes) {
      names += fmt::format("{}{}", names.empty() ? "" : " or ", dtype_name(dtype));
    }
    refuse(leaf, tensor, names);
  }
}

void ModuleParts::refuse(std::string_view leaf, const Tensor& tensor, std::string_view expected)
    const {
  throw Error(
      ErrorCode::kCorruptData,
      fmt::format(
          "tensor {} is {} {}, expected {}",
          quote(fmt::format("{}.{}", path_, leaf)),
          dtype_name(tensor.dtype),
          shape_text(tensor.shape),
          expected
      )
  );
}

std::uint32_t word_at(const Tensor& tensor, std::size_t index) {
  std::uint32_t word = 0;
  std::memcpy(&word, tensor.data.get() + index * sizeof(word), sizeof(word));
  return word;
}

float float_at(const Tensor& tensor, std::size_t index) {
  float value = 0.0F;
  const std::byte* from = tensor.data.get() + index * dtype_size(tensor.dtype);
  kernels::quantize_loops().widen(from, tensor.dtype, 1, &value);
  return value;
}

std::function<void()> release_all(std::vector<Tensor> tensors) {
  return [tensors = std::move(tensors)] {
    for (const Tensor& tensor : tensors) {
      if (tensor.release) {
        tensor.release();
      }
    }
  };
}

}  // namespace saker::load::importers

// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tensors of one module of another tool's checkpoint: "PATH.qweight", "PATH.scales", ...

#include "saker/base/tensor.h"
#include "saker/load/files/safetensors.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::importers {

class ModuleParts {
 public:
  // Keeps references to both. REQUIRES: they outlive it.
  ModuleParts(const TensorMap& tensors, const std::string& path) : tensors_(tensors), path_(path) {}

  const std::string& path() const { return path_; }

  // Null if there is no such tensor.
  const Tensor* find(std::string_view leaf) const;
  // Throws kCorruptData, naming the tensor, if it is missing.
  const Tensor& at(std::string_view leaf) const;
  // As above; throws kCorruptData unless the tensor has one of these dtypes and this shape.
  const Tensor& at(
      std::string_view leaf,
      std::initializer_list<DType> dtypes,
      const std::vector<std::int64_t>& shape
  ) const;
  // As above, for a tensor of two dimensions, both larger than 0.
  const Tensor& matrix(std::string_view leaf, std::initializer_list<DType> dtypes) const;

  // Throws kCorruptData about the tensor.
  [[noreturn]] void refuse(std::string_view leaf, const Tensor& tensor, std::string_view expected)
      const;

 private:
  void check_dtype(std::string_view leaf, const Tensor& tensor, std::initializer_list<DType> dtypes)
      const;

  const TensorMap& tensors_;
  const std::string& path_;
};

inline constexpr std::initializer_list<DType> kFloats = {
    DType::kFloat16, DType::kBFloat16, DType::kFloat32
};
inline constexpr std::initializer_list<DType> kWords = {DType::kInt32, DType::kUInt32};

// Word `index` of a tensor of 32-bit words.
std::uint32_t word_at(const Tensor& tensor, std::size_t index);
// Number `index` of a tensor of floats.
float float_at(const Tensor& tensor, std::size_t index);

// Frees the pages of all tensors.
std::function<void()> release_all(std::vector<Tensor> tensors);

}  // namespace saker::load::importers

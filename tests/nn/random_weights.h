// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tensors with random content, as a checkpoint would hold them.

#include "saker/base/tensor.h"
#include "saker/kernels/storage/packed_weight.h"
#include "saker/nn/weights/weights.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace saker::nn {

using TensorMap = std::map<std::string, Tensor, std::less<>>;

template <typename T>
Tensor make_tensor(DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
  const auto size = values.size() * sizeof(T);
  auto bytes = std::shared_ptr<std::byte[]>(new std::byte[size + 1]);
  if (size > 0) {
    std::memcpy(bytes.get(), values.data(), size);
  }
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = std::move(shape);
  tensor.data = std::shared_ptr<const std::byte>(bytes, bytes.get());
  return tensor;
}

inline Tensor float_tensor(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  return make_tensor(DType::kFloat32, std::move(shape), values);
}

inline std::uint16_t to_bf16(float value) {
  return static_cast<std::uint16_t>((std::bit_cast<std::uint32_t>(value) + 0x8000U) >> 16U);
}

// Fills a map with layers of random weights in one format (float32, bf16 or affine).
class RandomWeights {
 public:
  RandomWeights(kernels::WeightFormat format, unsigned seed) : format_(format), random_(seed) {}

  void add_linear(const std::string& path, int outputs, int inputs) {
    if (format_.kind == kernels::WeightKind::kAffine) {
      add_affine(path, outputs, inputs);
      return;
    }
    const float scale = 1.0F / std::sqrt(static_cast<float>(inputs));
    tensors_[path + ".weight"] = floats({outputs, inputs}, 0.0F, scale);
  }

  // mean + spread * normal, [size]
  void add_vector(const std::string& name, int size, float mean, float spread) {
    tensors_[name] = floats({size}, mean, spread);
  }

  void add_tensor(const std::string& name, std::vector<std::int64_t> shape) {
    tensors_[name] = floats(std::move(shape), 0.0F, 1.0F);
  }

  const TensorMap& tensors() const { return tensors_; }

 private:
  Tensor floats(std::vector<std::int64_t> shape, float mean, float spread) {
    const auto count =
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    std::vector<float> values(static_cast<std::size_t>(count));
    for (auto& value : values) {
      value = mean + spread * normal_(random_);
    }
    if (format_.kind == kernels::WeightKind::kFloat32) {
      return float_tensor(std::move(shape), values);
    }
    std::vector<std::uint16_t> halves(values.size());
    std::ranges::transform(values, halves.begin(), to_bf16);
    return make_tensor(DType::kBFloat16, std::move(shape), halves);
  }

  void add_affine(const std::string& path, int outputs, int inputs) {
    std::vector<std::uint32_t> words(
        static_cast<std::size_t>(outputs) * static_cast<std::size_t>(inputs * format_.bits / 32)
    );
    for (auto& word : words) {
      word = static_cast<std::uint32_t>(random_());
    }
    const int groups = inputs / format_.group_size;
    const auto levels = static_cast<float>(1 << format_.bits);
    const float scale = 3.0F / std::sqrt(static_cast<float>(inputs)) / levels;
    tensors_[path + ".weight"] =
        make_tensor(DType::kUInt32, {outputs, inputs * format_.bits / 32}, words);
    tensors_[path + ".scales"] = floats({outputs, groups}, scale, scale / 8.0F);
    tensors_[path + ".biases"] = floats({outputs, groups}, -scale * levels / 2.0F, scale / 8.0F);
  }

  kernels::WeightFormat format_;
  std::mt19937 random_;
  std::normal_distribution<float> normal_;
  TensorMap tensors_;
};

}  // namespace saker::nn

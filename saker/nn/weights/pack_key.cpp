// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/weights/pack_key.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace saker::nn {

PackKey pack_key(const kernels::WeightTensors& tensors, const kernels::WeightFormat& format) {
  return {
      .format = format,
      .scales = tensors.scales ? std::optional(tensors.scales->dtype) : std::nullopt,
  };
}

Tensor as_float32(const Tensor& tensor) {
  const auto values = std::make_shared<const std::vector<float>>(to_floats(tensor));
  if (tensor.release) {
    tensor.release();
  }
  Tensor result;
  result.dtype = DType::kFloat32;
  result.shape = tensor.shape;
  // Any object may be read as bytes.
  const auto* bytes = reinterpret_cast<const std::byte*>(values->data());
  result.data = std::shared_ptr<const std::byte>(values, bytes);
  return result;
}

}  // namespace saker::nn

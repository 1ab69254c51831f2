// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/host_arrays.h"

#include "saker/base/error.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace saker::cache {
namespace {

struct DTypePair {
  DType host;
  mx::Dtype array;
};

const std::vector<DTypePair>& dtype_pairs() {
  static const std::vector<DTypePair> pairs = {
      {DType::kFloat32, mx::float32},
      {DType::kFloat16, mx::float16},
      {DType::kBFloat16, mx::bfloat16},
      {DType::kUInt32, mx::uint32},
      {DType::kUInt8, mx::uint8},
      {DType::kInt32, mx::int32},
      {DType::kInt64, mx::int64},
      {DType::kInt16, mx::int16},
      {DType::kInt8, mx::int8},
      {DType::kUInt16, mx::uint16},
      {DType::kUInt64, mx::uint64},
      {DType::kBool, mx::bool_},
  };
  return pairs;
}

}  // namespace

mx::array to_array(const Tensor& tensor) {
  const auto& pairs = dtype_pairs();
  const auto found = std::ranges::find(pairs, tensor.dtype, &DTypePair::host);
  require(
      found != pairs.end(),
      ErrorCode::kUnsupported,
      "an array of dtype {}, which is not computed with",
      dtype_name(tensor.dtype)
  );
  mx::Shape shape;
  for (const std::int64_t size : tensor.shape) {
    require(
        size >= 0 && size <= INT32_MAX,
        ErrorCode::kCorruptData,
        "an array with a dimension of {}",
        size
    );
    shape.push_back(static_cast<int>(size));
  }
  mx::array array(mx::allocator::malloc(tensor.nbytes()), std::move(shape), found->array);
  if (tensor.nbytes() > 0) {
    std::memcpy(array.data<std::byte>(), tensor.data.get(), tensor.nbytes());
  }
  return array;
}

Tensor to_tensor(const mx::array& array) {
  const auto held = std::make_shared<mx::array>(mx::contiguous(array));
  held->eval();
  const auto& pairs = dtype_pairs();
  const auto found = std::ranges::find(pairs, held->dtype(), &DTypePair::array);
  require(found != pairs.end(), ErrorCode::kUnsupported, "an array of a dtype that files lack");
  Tensor tensor;
  tensor.dtype = found->host;
  tensor.shape.assign(held->shape().begin(), held->shape().end());
  tensor.data = std::shared_ptr<const std::byte>(held, held->data<std::byte>());
  return tensor;
}

}  // namespace saker::cache

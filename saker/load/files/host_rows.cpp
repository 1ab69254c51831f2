// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/host_rows.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

template <typename T>
std::vector<std::int64_t> widened(const Tensor& tensor) {
  std::vector<std::int64_t> values;
  const auto bytes = tensor.bytes();
  values.reserve(bytes.size() / sizeof(T));
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    values.push_back(static_cast<std::int64_t>(value));
  }
  return values;
}

// Zeroed bytes that the tensor owns; returns where to write them.
std::byte* allocate(Tensor& tensor) {
  const auto storage = std::make_shared<std::vector<std::byte>>(tensor.nbytes());
  tensor.data = std::shared_ptr<const std::byte>(storage, storage->data());
  return storage->data();
}

}  // namespace

std::optional<std::vector<std::int64_t>> to_integers(const Tensor& tensor) {
  switch (tensor.dtype) {
    case DType::kInt64:
      return widened<std::int64_t>(tensor);
    case DType::kInt32:
      return widened<std::int32_t>(tensor);
    case DType::kInt16:
      return widened<std::int16_t>(tensor);
    case DType::kInt8:
      return widened<std::int8_t>(tensor);
    case DType::kUInt32:
      return widened<std::uint32_t>(tensor);
    case DType::kUInt16:
      return widened<std::uint16_t>(tensor);
    case DType::kUInt8:
    case DType::kBool:
      return widened<std::uint8_t>(tensor);
    default:
      return std::nullopt;
  }
}

Tensor int32_tensor(std::vector<std::int64_t> shape, std::span<const std::int64_t> values) {
  Tensor tensor{.dtype = DType::kInt32, .shape = std::move(shape), .data = {}, .release = {}};
  std::byte* data = allocate(tensor);
  for (const std::int64_t value : values) {
    const auto narrow = static_cast<std::int32_t>(value);
    std::memcpy(data, &narrow, sizeof(narrow));
    data += sizeof(narrow);
  }
  return tensor;
}

Tensor bool_tensor(bool value) {
  Tensor tensor{.dtype = DType::kBool, .shape = {}, .data = {}, .release = {}};
  *allocate(tensor) = static_cast<std::byte>(value);
  return tensor;
}

Tensor first_rows(const Tensor& tensor, std::int64_t count) {
  const std::int64_t rows = tensor.shape[2];
  if (count == rows) {
    return tensor;
  }
  Tensor cut{.dtype = tensor.dtype, .shape = tensor.shape, .data = {}, .release = {}};
  cut.shape[2] = count;
  std::byte* to = allocate(cut);
  const std::byte* from = tensor.data.get();
  const auto row_bytes = static_cast<std::size_t>(tensor.shape[3]) * dtype_size(tensor.dtype);
  const std::size_t step = static_cast<std::size_t>(rows) * row_bytes;
  const std::size_t kept = static_cast<std::size_t>(count) * row_bytes;
  for (std::int64_t head = 0; head < tensor.shape[0] * tensor.shape[1] && kept > 0; ++head) {
    std::memcpy(to, from, kept);
    from += step;
    to += kept;
  }
  return cut;
}

}  // namespace saker::load

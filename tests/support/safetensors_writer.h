// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes safetensors files for tests: correct ones from tensors, and any header over any data.

#include "saker/base/json/json.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace saker::testing {

struct RawTensor {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::string bytes;
};

// The bytes of a vector of numbers.
template <typename T>
std::string raw_bytes(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  return bytes;
}

inline RawTensor f32_tensor(
    std::string name, std::vector<std::int64_t> shape, const std::vector<float>& values
) {
  return {std::move(name), "F32", std::move(shape), raw_bytes(values)};
}

// A file of this header, whatever it says, and this data.
inline std::string safetensors_file(std::string_view header, std::string_view data) {
  std::string file(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) {
    file[i] = static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i) & 0xff);
  }
  file += header;
  file += data;
  return file;
}

inline std::string safetensors_file(
    const std::vector<RawTensor>& tensors, const std::map<std::string, std::string>& metadata = {}
) {
  Json header = Json::object();
  if (!metadata.empty()) {
    header["__metadata__"] = metadata;
  }
  std::string data;
  for (const RawTensor& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype},
        {"shape", tensor.shape},
        {"data_offsets", {data.size(), data.size() + tensor.bytes.size()}},
    };
    data += tensor.bytes;
  }
  return safetensors_file(header.dump(), data);
}

}  // namespace saker::testing

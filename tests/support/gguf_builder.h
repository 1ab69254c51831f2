// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes GGUF files for tests: correct ones, and with any number where a field says something else.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::testing {

template <typename T>
std::string gguf_number(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

inline std::string gguf_string(std::string_view text) {
  return gguf_number<std::uint64_t>(text.size()) + std::string(text);
}

class GgufBuilder {
 public:
  // A value's type and its bytes.
  GgufBuilder& raw(std::string_view key, std::uint32_t type, std::string_view bytes) {
    keys_ += gguf_string(key) + gguf_number(type) + std::string(bytes);
    ++key_count;
    return *this;
  }

  GgufBuilder& integer(std::string_view key, std::uint32_t value) {
    return raw(key, 4, gguf_number(value));
  }

  GgufBuilder& number(std::string_view key, float value) { return raw(key, 6, gguf_number(value)); }

  GgufBuilder& boolean(std::string_view key, bool value) {
    return raw(key, 7, std::string(1, value ? '\1' : '\0'));
  }

  GgufBuilder& string(std::string_view key, std::string_view value) {
    return raw(key, 8, gguf_string(value));
  }

  GgufBuilder& strings(std::string_view key, const std::vector<std::string>& values) {
    std::string bytes = gguf_number<std::uint32_t>(8) + gguf_number<std::uint64_t>(values.size());
    for (const std::string& value : values) {
      bytes += gguf_string(value);
    }
    return raw(key, 9, bytes);
  }

  GgufBuilder& floats(std::string_view key, const std::vector<float>& values) {
    return array(key, 6, values);
  }

  GgufBuilder& integers(std::string_view key, const std::vector<std::int32_t>& values) {
    return array(key, 5, values);
  }

  // `shape` as the format has it: columns first. The offset is where its bytes are, unless given.
  GgufBuilder& tensor(
      std::string_view name,
      const std::vector<std::uint64_t>& shape,
      std::uint32_t type,
      std::string_view bytes,
      std::optional<std::uint64_t> offset = std::nullopt
  ) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    infos_ += gguf_string(name) + gguf_number(static_cast<std::uint32_t>(shape.size()));
    for (const std::uint64_t size : shape) {
      infos_ += gguf_number(size);
    }
    infos_ += gguf_number(type) + gguf_number<std::uint64_t>(offset.value_or(data_.size()));
    data_ += bytes;
    ++tensor_count;
    return *this;
  }

  std::string file() const {
    std::string bytes = "GGUF" + gguf_number(version) + gguf_number(tensor_count) +
                        gguf_number(key_count) + keys_ + infos_;
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    return bytes + data_;
  }

  std::uint32_t version = 3;
  std::uint64_t tensor_count = 0;  // What the file says.
  std::uint64_t key_count = 0;
  std::size_t alignment = 32;

 private:
  template <typename T>
  GgufBuilder& array(std::string_view key, std::uint32_t type, const std::vector<T>& values) {
    std::string bytes = gguf_number(type) + gguf_number<std::uint64_t>(values.size());
    for (const T value : values) {
      bytes += gguf_number(value);
    }
    return raw(key, 9, bytes);
  }

  std::string keys_;
  std::string infos_;
  std::string data_;
};

}  // namespace saker::testing

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Key-value pairs of a GGUF file to write (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
// Plain data.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace saker::load::gguf {

using MetadataValue = std::variant<
    bool,
    std::uint32_t,
    std::int32_t,
    float,
    std::string,
    std::vector<bool>,
    std::vector<std::uint32_t>,
    std::vector<std::int32_t>,
    std::vector<float>,
    std::vector<std::string>>;

struct KeyValue {
  std::string key;
  MetadataValue value;
};

using Metadata = std::vector<KeyValue>;  // In the file's order; keys differ.

}  // namespace saker::load::gguf

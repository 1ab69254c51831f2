// SPDX-License-Identifier: Apache-2.0
#pragma once

// The safetensors format (https://huggingface.co/docs/safetensors). A file has eight bytes with the
// header's length, little-endian, then the header and the data. The header is a JSON object with
// each tensor's dtype, shape and byte range; these ranges cover the data without holes or overlap.
// Files are mapped, and read only where a tensor is read. Every rule of the format is checked
// before a tensor is handed out. A broken file throws kCorruptData with one line, and takes memory
// in proportion to its size.

#include "saker/base/mapped_file.h"
#include "saker/base/tensor.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

// The format's own limit.
inline constexpr std::size_t kMaxSafetensorsHeader = 100'000'000;
// Maximum dimensions of a tensor.
inline constexpr std::size_t kMaxTensorRank = 32;

using TensorMap = std::map<std::string, Tensor, std::less<>>;

struct SafetensorsEntry {
  std::string name;
  std::string_view dtype_name;  // As in the file: "BF16", "F8_E4M3", ...
  std::optional<DType> dtype;   // Empty for dtypes that we can't hold.
  std::vector<std::int64_t> shape;
  std::int64_t element_count = 0;
  std::size_t begin = 0;  // Bytes [begin, end) of the file.
  std::size_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  // In the order of their bytes.
  std::map<std::string, std::string, std::less<>> metadata;
};

// Checks the whole file's structure. `what` names the file in messages.
SafetensorsHeader parse_safetensors(std::span<const std::byte> file, std::string_view what);

SafetensorsHeader read_safetensors_header(const std::filesystem::path& path);

// A view of one entry's bytes; `release` frees its pages. Throws kUnsupported for a dtype that we
// can't hold.
Tensor map_tensor(const std::shared_ptr<const MappedFile>& file, const SafetensorsEntry& entry);

// All tensors of one file by name.
TensorMap read_safetensors(const std::filesystem::path& path);

}  // namespace saker::load

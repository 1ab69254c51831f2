// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes safetensors files (see safetensors.h), whole or not at all.

#include "saker/base/atomic_file.h"
#include "saker/base/tensor.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace saker::load {

// In the order of the file.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using FileMetadata = std::map<std::string, std::string, std::less<>>;

// A tensor whose bytes come later.
struct PlannedTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;

  std::size_t nbytes() const;
};

// What a file begins with: the header's length and the header, padded so that the bytes of the
// tensors, which follow each other without holes, begin aligned. REQUIRES: names differ.
std::string safetensors_prefix(
    std::span<const PlannedTensor> tensors, const FileMetadata& metadata
);

// Throws as AtomicFile does. REQUIRES: names differ and are UTF-8 text, as is the metadata.
void write_safetensors(
    const std::filesystem::path& path,
    const NamedTensors& tensors,
    const FileMetadata& metadata,
    FileReaders readers = FileReaders::kUsual
);

// The same of tensors that are made when they are written, so that a large file needs little
// memory: make(i) is called once for each, in order, and must have its dtype and shape; else throws
// kInternal.
void write_safetensors(
    const std::filesystem::path& path,
    const std::vector<PlannedTensor>& tensors,
    const std::function<Tensor(std::size_t)>& make,
    const FileMetadata& metadata,
    FileReaders readers = FileReaders::kUsual
);

}  // namespace saker::load

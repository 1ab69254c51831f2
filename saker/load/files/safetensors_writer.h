// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes safetensors files (see safetensors.h), whole or not at all.

#include "saker/base/files/atomic_file.h"
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

// A tensor whose bytes are written later.
struct PlannedTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;

  std::size_t nbytes() const;
};

// The beginning of a file: the header's length and the header, padded so that the tensors' bytes
// begin aligned. These follow each other without holes. REQUIRES: names differ.
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

// As above, for tensors that are made when they are written, so that a large file needs little
// memory. Calls make(i) once for each, in order. Throws kInternal if its result has another dtype
// or shape.
void write_safetensors(
    const std::filesystem::path& path,
    const std::vector<PlannedTensor>& tensors,
    const std::function<Tensor(std::size_t)>& make,
    const FileMetadata& metadata,
    FileReaders readers = FileReaders::kUsual
);

}  // namespace saker::load

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes a GGUF file, version 3, little-endian, that appears whole or not at all
// (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md).
//
//   GgufWriter writer(path, metadata, {{"output_norm.weight", TensorType::kFloat32, {64}}, ...});
//   writer.write(0, 0, bytes);  // in any order, in pieces, from several threads
//   writer.commit();

#include "saker/base/files/atomic_file.h"
#include "saker/load/export/gguf_metadata.h"
#include "saker/load/gguf/blocks/gguf_types.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace saker::load::gguf {

// A tensor whose bytes are written later.
struct PlannedBlocks {
  std::string name;
  TensorType type = TensorType::kFloat32;
  std::vector<std::int64_t> shape;  // Rows first; the last dimension is whole blocks.

  std::size_t row_bytes() const;
  std::size_t bytes() const;
};

class GgufWriter {
 public:
  // Throws as AtomicFile does. REQUIRES: keys differ, names differ, each tensor has elements.
  GgufWriter(
      const std::filesystem::path& path,
      const Metadata& metadata,
      const std::vector<PlannedBlocks>& tensors
  );

  // Bytes of the whole file.
  std::size_t file_bytes() const { return file_bytes_; }

  // Writes bytes [offset, offset + bytes.size()) of tensor `index`. Safe to call from several
  // threads. Throws kCapacity when the disk is full. REQUIRES: the range is inside the tensor.
  void write(std::size_t index, std::size_t offset, std::span<const std::byte> bytes);

  // Flushes and gives the file its name.
  void commit();

 private:
  AtomicFile file_;
  std::vector<std::size_t> begin_;  // Each tensor's place in the file.
  std::size_t file_bytes_ = 0;
};

}  // namespace saker::load::gguf

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Raw logits of a scored text in a file: float32 [T, V], row t after token t. A safetensors file
// has them as "logits" (several views: "logits.VIEW"), and the token ids as "tokens", int32 [T]. A
// name that ends in .npy gives NumPy's format, for one view. Rows are written as they come, so
// memory holds none. The file appears whole or not at all.

#include "saker/base/files/atomic_file.h"
#include "saker/engine/views.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace saker::cli {

class LogitsFile {
 public:
  // Empty `views` means the base. Throws kInvalidArgument for another suffix of the name, or
  // several views in a .npy file, and as AtomicFile does.
  LogitsFile(
      const std::filesystem::path& path,
      const std::vector<engine::View>& views,
      const std::vector<std::int32_t>& tokens,
      int vocab_size
  );

  // Any thread. Throws kCapacity when the disk is full.
  void write(std::size_t view, std::size_t row, std::span<const float> logits);

  // REQUIRES: all rows of all views are written.
  void commit() { file_.commit(); }

 private:
  AtomicFile file_;
  std::size_t begin_ = 0;  // Offset of the first view's rows.
  std::size_t row_bytes_ = 0;
  std::size_t view_bytes_ = 0;
};

}  // namespace saker::cli

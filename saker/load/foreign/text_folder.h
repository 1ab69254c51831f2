// SPDX-License-Identifier: Apache-2.0
#pragma once

// The folder with a model's configuration and texts (tokenizer, chat template): the model's own, or
// for a GGUF file a temporary one with what follows from its metadata, for the object's life.

#include "saker/base/atomic_folder.h"

#include <filesystem>
#include <optional>

namespace saker::load {

class TextFolder {
 public:
  // Reads no weights. Throws as gguf::open_gguf does, and kNotFound where no temporary folder can
  // be written. A path that is no regular file is taken as it is.
  explicit TextFolder(const std::filesystem::path& model);

  const std::filesystem::path& path() const { return path_; }

 private:
  std::optional<AtomicFolder> temporary_;
  std::filesystem::path path_;
};

}  // namespace saker::load

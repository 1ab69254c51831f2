// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of a GGUF model: one, or several parts that llama.cpp's tools split it into. Parts are
// named NAME-00001-of-00003.gguf and lie in one folder. Their keys give the part's number
// (`split.no`, from 0), the number of parts (`split.count`) and the number of all tensors
// (`split.tensors.count`). The first part has the model's metadata. Only names that follow from the
// given one are opened.

#include "saker/base/mapped_file.h"
#include "saker/load/gguf/gguf_file.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace saker::load::gguf {

struct Part {
  std::string what;  // Name for messages.
  std::span<const std::byte> bytes;
  std::shared_ptr<const MappedFile> mapped;  // The mapped file; null for files in memory.
};

struct JoinedParts {
  std::vector<Part> parts;
  Header header;  // Keys of the first part, tensors of all.
};

// Opens all parts of the model that contains `path`. Throws as MappedFile::open and join_parts do,
// kCorruptData for a name that contradicts its keys, and kNotFound naming missing parts.
JoinedParts open_parts(const std::filesystem::path& path);

// Throws as parse_gguf does for each part. Throws kCorruptData unless they are the parts of one
// model in order: equal counts and architectures, consecutive numbers, each tensor exactly once.
JoinedParts join_parts(std::vector<Part> parts);

}  // namespace saker::load::gguf

// SPDX-License-Identifier: Apache-2.0
#pragma once

// The files of a model in GGUF: one, or several that llama.cpp's tools split it into. Those are
// called NAME-00001-of-00003.gguf, lie in one folder and say in their keys which one they are
// (`split.no` from 0, `split.count`) and how many tensors there are in all (`split.tensors.count`);
// the first has the model's metadata. Only names that follow from the one given are opened.

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
  std::string what;  // In messages.
  std::span<const std::byte> bytes;
  std::shared_ptr<const MappedFile> mapped;  // What they lie in; none in memory.
};

struct JoinedParts {
  std::vector<Part> parts;
  Header header;  // The first part's keys, and the tensors of all.
};

// All parts of the model that `path` is or is a part of. Throws as MappedFile::open and join_parts
// do, kCorruptData for a name that its keys contradict, and kNotFound naming the parts that are
// missing.
JoinedParts open_parts(const std::filesystem::path& path);

// Throws as parse_gguf does for each part, and kCorruptData for parts that are not those of one
// model in order: other counts, numbers or architectures, a tensor in two of them, tensors missing.
JoinedParts join_parts(std::vector<Part> parts);

}  // namespace saker::load::gguf

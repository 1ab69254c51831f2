// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a GGUF file as a model in MLX's formats, or with the file's own blocks. Codes that fit MLX's
// affine layout (see gguf_types.h) keep their exact values; Q6_K becomes float16, with a note.
// Float32 tensors become the model's dtype if that holds all of their numbers. The dtype is float16
// with codes, else the embedding's.

#include "saker/load/importers/lazy_tensor.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace saker::load::gguf {

// Says if the values behind the headers are there. With kToCome every tensor is assumed to hold
// valid numbers: the model can be inspected, but not run.
enum class Values : std::uint8_t { kThere, kToCome };

// The form of matrices with codes: MLX's formats, which programs of MLX can read, or the file's own
// blocks (ImportedModel::block_formats), which the CPU's kernels multiply.
enum class CodeForm : std::uint8_t { kMlx, kBlocks };

// `path` is the model's file, or any part of a model in several files. Reads headers, norms and
// scales only; the tensors keep the files mapped. Throws as open_parts, family_of, model_config and
// tokenizer_files do, and kCorruptData for tensors that don't fit the metadata.
importers::ImportedModel open_gguf(
    const std::filesystem::path& path,
    Values values = Values::kThere,
    CodeForm form = CodeForm::kMlx
);

// The model without tensors: configuration (without quantization), texts and their notes. Reads
// headers only.
importers::ImportedModel open_gguf_texts(const std::filesystem::path& path);

// As open_gguf, from files in memory, which must outlive the model.
importers::ImportedModel read_gguf(
    std::span<const std::span<const std::byte>> files,
    std::string_view what,
    CodeForm form = CodeForm::kMlx
);

}  // namespace saker::load::gguf

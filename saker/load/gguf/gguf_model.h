// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a GGUF file as a model in MLX's formats. Codes that fit MLX's affine layout (see
// gguf_types.h) keep their exact values; Q6_K becomes float16, with a note. Float32 tensors become
// the model's dtype if that holds all of their numbers. The dtype is float16 with codes, else the
// embedding's.

#include "saker/kernels/layout/weight_format.h"
#include "saker/load/importers/lazy_tensor.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace saker::load::gguf {

// Says if the values behind the headers are there. With kToCome every tensor is assumed to hold
// valid numbers: the model can be inspected, but not run.
enum class Values : std::uint8_t { kThere, kToCome };

// `path` is the model's file, or any part of a model in several files. Reads headers, norms and
// scales only; the tensors keep the files mapped. Throws as open_parts, family_of, model_config and
// tokenizer_files do, and kCorruptData for tensors that don't fit the metadata.
importers::ImportedModel open_gguf(
    const std::filesystem::path& path, Values values = Values::kThere
);

// A model whose matrices with codes are the file's own blocks, which the CPU's kernels multiply.
struct BlockModel {
  importers::ImportedModel model;
  // The formats of these matrices by path (kernels/layout/block_format.h). Configurations can't
  // describe them.
  std::map<std::string, kernels::WeightFormat> formats;
};

// As open_gguf and read_gguf, without converting blocks.
BlockModel open_gguf_blocks(const std::filesystem::path& path, Values values = Values::kThere);
BlockModel read_gguf_blocks(
    std::span<const std::span<const std::byte>> files, std::string_view what
);

// The model without tensors: configuration (without quantization), texts and their notes. Reads
// headers only.
importers::ImportedModel open_gguf_texts(const std::filesystem::path& path);

// As open_gguf, from files in memory, which must outlive the model.
importers::ImportedModel read_gguf(
    std::span<const std::span<const std::byte>> files, std::string_view what
);

}  // namespace saker::load::gguf

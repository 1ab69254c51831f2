// SPDX-License-Identifier: Apache-2.0
#pragma once

// A GGUF file as a model of MLX's formats. Weights whose codes MLX's affine layout holds (see
// gguf_types.h) stay what they are, to the bit; Q6_K becomes float16, with a note. Float32 tensors
// become the model's dtype (float16 with codes, else the embedding's) where that holds all of their
// numbers.

#include "saker/load/importers/lazy_tensor.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace saker::load::gguf {

// Whether what follows the headers is there. Where it is still to come, every tensor is taken to
// hold numbers as sound files have them: the model is to be judged, not to be run.
enum class Values : std::uint8_t { kThere, kToCome };

// Any part of a model in several files names it. Reads headers, norms and scales only; the tensors
// keep the files mapped. Throws as open_parts, family_of, model_config and tokenizer_files do, and
// kCorruptData for tensors that don't fit the metadata.
importers::ImportedModel open_gguf(
    const std::filesystem::path& path, Values values = Values::kThere
);

// The model without tensors: configuration (without quantization), texts and their notes. Reads
// headers only.
importers::ImportedModel open_gguf_texts(const std::filesystem::path& path);

// As open_gguf, of all files in memory, which must outlive the model.
importers::ImportedModel read_gguf(
    std::span<const std::span<const std::byte>> files, std::string_view what
);

}  // namespace saker::load::gguf

// SPDX-License-Identifier: Apache-2.0
#pragma once

// A GGUF file's metadata as the configuration of a model folder, and what its tensors are there:
// names, rows that lie in another order, norms that are stored plus one
// (llama.cpp's convert_hf_to_gguf.py and gguf-py/gguf/constants.py, backwards).

#include "saker/base/json.h"
#include "saker/load/gguf/gguf_file.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace saker::load::gguf {

// A family of models that GGUF knows under its own name.
enum class Family : std::uint8_t { kLlama, kQwen2, kQwen3, kQwen3Moe, kGemma, kGemma2, kGemma3 };

// Throws kUnsupported, naming those that we run, for others.
Family family_of(const Header& header);

// Without what follows from how tensors are stored (`quantization`, `torch_dtype`).
// `rope_factors`: what the file's rope_freqs.weight holds, empty without one. Throws kUnsupported
// for what our models can't do and kCorruptData for missing keys, naming the key.
Json model_config(const Header& header, Family family, std::span<const float> rope_factors);

// What a tensor of the file is in a model folder.
struct TensorRole {
  std::string name;
  int rotated_heads = 0;  // Its rows are those of so many heads, in the order of rotated pairs.
  bool plus_one = false;  // A norm's factors, where the folder has what they exceed 1 by.
};

// None for tensors with rope's factors. Throws kUnsupported for tensors that the family does
// not have.
std::optional<TensorRole> role_of(const Header& header, Family family, std::string_view name);

}  // namespace saker::load::gguf

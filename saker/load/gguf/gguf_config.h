// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts a GGUF file's metadata to the configuration of a model folder, and its tensors' names.
// It finds rows in another order and norms that are stored plus one (llama.cpp's
// convert_hf_to_gguf.py and gguf-py/gguf/constants.py, backwards).

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_family.h"
#include "saker/load/gguf/gguf_file.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace saker::load::gguf {

// Leaves out `quantization` and `torch_dtype`, which follow from the stored tensors. `rope_factors`
// is the content of rope_freqs.weight, empty without one. Throws kUnsupported for features that our
// models lack, and kCorruptData for missing keys, naming the key.
Json model_config(const Header& header, const Family& family, std::span<const float> rope_factors);

// The role of a file's tensor in a model folder.
struct TensorRole {
  std::string name;
  int rotated_heads = 0;  // Its rows are this many heads' rows, in the order of rotated pairs.
  bool plus_one = false;  // A norm's factors; the folder holds them less 1.
};

// Empty for tensors with RoPE factors. Throws kUnsupported for tensors that the family does not
// have.
std::optional<TensorRole> role_of(
    const Header& header, const Family& family, std::string_view name
);

}  // namespace saker::load::gguf

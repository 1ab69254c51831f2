// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts a GGUF file's metadata to the configuration of a model folder, and its tensors' names.
// It finds rows in another order and norms that are stored plus one (llama.cpp's
// convert_hf_to_gguf.py and gguf-py/gguf/constants.py, backwards).

#include "saker/base/json/json.h"
#include "saker/load/gguf/gguf_family.h"
#include "saker/load/gguf/gguf_file.h"
#include "saker/load/gguf/gguf_tensor_role.h"

#include <span>
#include <string_view>
#include <vector>

namespace saker::load::gguf {

// Leaves out `quantization` and `torch_dtype`, which follow from the stored tensors. `rope_factors`
// is the content of rope_freqs.weight, empty without one. Throws kUnsupported for features that our
// models lack, kCorruptData for missing keys, naming the key, and kInvalidArgument for adapters.
Json model_config(const Header& header, const Family& family, std::span<const float> rope_factors);

// True for RoPE's factors, and for values that old exporters derived from it.
bool is_rope_table(std::string_view name);

// The name of the tensor with the model's factors of rope, which a file may lack.
std::string_view rope_table(const Header& header, const Family& family);

// The places of a tensor: one, or several for rows that a folder has in tensors of their own. Empty
// for tables of RoPE, and for tensors of a head that drafts tokens which our heads lack. Throws
// kUnsupported for other tensors that the family does not have.
std::vector<TensorRole> roles_of(const Header& header, const Family& family, std::string_view name);

}  // namespace saker::load::gguf

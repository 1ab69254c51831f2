// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tensors of a model folder in a GGUF file: names, order of rows, and changed values; the
// inverse of roles_of() and gguf_rows.h. Pure; any thread.

#include "saker/load/export/model_metadata.h"
#include "saker/load/gguf/gguf_tensor_role.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {

struct FileTensor {
  std::string name;  // "blk.3.attn_q.weight"
  TensorRole role;   // As for reading the file; its name is the folder's.
};

// `name` is a folder's in mlx-lm's form (convert/mlx_weights.h), with or without the scope
// "language_model.", of a tensor that is no codes. Empty for tensors that are not written: a tied
// head's copy, parts for images, tables of RoPE, and a head that drafts tokens. Throws kUnsupported
// for tensors that files of this architecture cannot have.
std::optional<FileTensor> file_tensor(const ModelMetadata& model, std::string_view name);

// The tensor's shape in the file, rows first. Throws kCorruptData unless its rows and columns are
// whole heads, as the role needs.
std::vector<std::int64_t> file_shape(const FileTensor& tensor, std::span<const std::int64_t> shape);

// The folder's row for each of the file's; vectors whose heads move have one row per number.
// REQUIRES: `shape` is file_shape()'s.
std::function<std::int64_t(std::int64_t)> folder_rows(
    const TensorRole& role, std::span<const std::int64_t> shape
);

// Brings a folder's heads into the file's order by its own file_row() and move_columns().
ValueHeads reversed(const ValueHeads& heads);

// The file's number for a folder's, as the role says: a norm's factor, or a decay.
float file_value(const TensorRole& role, float value);

}  // namespace saker::load::gguf

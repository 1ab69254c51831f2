// SPDX-License-Identifier: Apache-2.0
#pragma once

// Recipes of GGUF files: which type each tensor of a file gets, as llama.cpp's `quantize` decides
// it (llama.cpp, src/llama-quant.cpp). Pure; any thread.

#include "saker/load/gguf/blocks/gguf_types.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {

struct Recipe;  // One row of the table of recipes.

// By name in any case, such as "Q4_K_M". Throws kInvalidArgument with all names.
const Recipe& find_recipe(std::string_view name);

// "F32, F16, BF16, Q8_0, ...", the largest first.
std::string recipe_names();

std::string_view recipe_name(const Recipe& recipe);

// The number in `general.file_type`.
std::uint32_t recipe_number(const Recipe& recipe);

// True if a recipe's rounding is too coarse without an importance matrix.
bool needs_importance(const Recipe& recipe);

// Facts that decide beside names.
struct RecipeFacts {
  std::string_view architecture;  // `general.architecture`.
  int layers = 0;                 // With those of a head that drafts.
  int heads = 0;
  int kv_heads = 0;
  int experts = 0;
  bool importance = false;  // An importance matrix is there.
};

struct RecipeTensor {
  std::string name;          // In the file.
  std::int64_t columns = 0;  // The last dimension.
  int rank = 0;
};

// True before `b` in the order of the file: tensors of the whole model first, then layer by layer.
bool precedes(std::string_view a, std::string_view b);

// The type of each tensor. Types count in the order of `tensors`. REQUIRES: sorted by precedes().
std::vector<TensorType> tensor_types(
    const Recipe& recipe, const RecipeFacts& facts, std::span<const RecipeTensor> tensors
);

}  // namespace saker::load::gguf

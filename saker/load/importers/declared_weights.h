// SPDX-License-Identifier: Apache-2.0
#pragma once

// The description of quantized weights in a tool's section of the configuration. Tensors decide if
// they can; the section answers the rest, and says which tensors must exist.

#include "saker/base/json/json.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace saker::load::importers {

// Rows and columns of a weight that share a scale.
struct BlockSize {
  std::int64_t rows = 128;
  std::int64_t columns = 128;
};

// One group of modules. Members are empty if the section has no usable number for them.
struct DeclaredWeights {
  std::optional<std::int64_t> bits;
  std::optional<std::int64_t> group_size;  // Above 0.
  std::optional<bool> symmetric;
  std::optional<BlockSize> block;
};

// The groups of compressed-tensors that are stored in `format`, in the section's order.
std::vector<DeclaredWeights> declared_groups(const Json& section, std::string_view format);

// True if there are groups and all of them have zero points.
bool all_asymmetric(const std::vector<DeclaredWeights>& groups);

// A pair of sizes, each above 0; empty for null. Throws kCorruptData, naming the key, for anything
// else.
std::optional<BlockSize> read_block_size(const Json& object, std::string_view key);

}  // namespace saker::load::importers

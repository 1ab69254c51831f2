// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a tool's section of the configuration says of quantized weights. Tensors decide where they
// can; this says what they leave open, and what has to be there.

#include "saker/base/json.h"

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

// Of one group of modules. Nothing where the section does not say it, or not as a usable number.
struct DeclaredWeights {
  std::optional<std::int64_t> bits;
  std::optional<std::int64_t> group_size;  // Above 0.
  std::optional<bool> symmetric;
  std::optional<BlockSize> block;
};

// compressed-tensors' groups that are stored in `format`, in the section's order.
std::vector<DeclaredWeights> declared_groups(const Json& section, std::string_view format);

// Whether there are some and all of them have zero points.
bool all_asymmetric(const std::vector<DeclaredWeights>& groups);

// A pair of sizes, each above 0; nothing for null. Throws kCorruptData, naming the key, for others.
std::optional<BlockSize> read_block_size(const Json& object, std::string_view key);

}  // namespace saker::load::importers

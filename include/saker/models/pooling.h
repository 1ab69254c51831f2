// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the hidden states of a text's tokens become one vector. Plain values; no MLX.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace saker::models {

// The rule that makes one row of the rows of a text's tokens.
enum class Pooling : std::uint8_t {
  kLast,  // The last token's row.
  kMean,  // The mean of all rows.
  kCls,   // The first token's row.
};

// The names of all rules: "last", "mean", "cls".
std::span<const std::string_view> pooling_names();

// The rule of this name; none for any other name.
std::optional<Pooling> find_pooling(std::string_view name);

// The rule's name.
std::string_view pooling_name(Pooling pooling);

}  // namespace saker::models

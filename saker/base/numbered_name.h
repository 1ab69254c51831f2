// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names that contain numbers: tensors of layers, files of models in parts.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace saker {

struct NumberedName {
  std::int64_t number = 0;
  std::string_view rest;
};

// "layers.12.mlp" behind the prefix "layers." gives 12 and "mlp". Empty for names of another form:
// no number, a signed or too large one, one with leading zeros, or nothing behind its dot.
std::optional<NumberedName> numbered_name(std::string_view name, std::string_view prefix);

// The name of a file that holds one of several parts: "model-00001-of-00003.gguf".
struct PartName {
  std::string stem;  // "model"
  int number = 0;    // From 1.
  int count = 0;
  std::size_t width = 0;  // Digits of `number`.
  std::string total;      // `count` as it is written.
  std::string suffix;

  // The name of the part with another number.
  std::string sibling(int other) const;
};

// Empty for names of another form or another `suffix`, for more than 99999 parts, and for a number
// outside 1 to `count`.
std::optional<PartName> part_name(std::string_view name, std::string_view suffix);

}  // namespace saker

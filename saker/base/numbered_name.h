// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names of tensors with a layer's number in them.

#include <cstdint>
#include <optional>
#include <string_view>

namespace saker {

struct NumberedName {
  std::int64_t number = 0;
  std::string_view rest;
};

// "layers.12.mlp" behind the prefix "layers." is 12 and "mlp". None for names of another form: no
// number, one that is signed, too large or written with zeros before it, or nothing behind its dot.
std::optional<NumberedName> numbered_name(std::string_view name, std::string_view prefix);

}  // namespace saker

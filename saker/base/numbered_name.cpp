// SPDX-License-Identifier: Apache-2.0
#include "saker/base/numbered_name.h"

#include <charconv>
#include <cstddef>

namespace saker {

std::optional<NumberedName> numbered_name(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) {
    return std::nullopt;
  }
  name.remove_prefix(prefix.size());
  const auto dot = name.find('.');
  if (dot == std::string_view::npos || dot == 0 || dot + 1 == name.size()) {
    return std::nullopt;
  }
  const std::string_view digits = name.substr(0, dot);
  NumberedName result{.rest = name.substr(dot + 1)};
  const char* const end = digits.data() + digits.size();
  const auto [next, error] = std::from_chars(digits.data(), end, result.number);
  const bool is_plain = digits.front() != '-' && (digits.front() != '0' || digits.size() == 1);
  return error == std::errc() && next == end && is_plain ? std::optional(result) : std::nullopt;
}

}  // namespace saker

// SPDX-License-Identifier: Apache-2.0
#include "saker/base/numbered_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace saker {
namespace {

// Parses up to five digits.
std::optional<int> small_number(std::string_view digits) {
  constexpr std::size_t kMaxDigits = 5;
  const bool is_plain = std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  int number = 0;
  if (digits.empty() || digits.size() > kMaxDigits || !is_plain) {
    return std::nullopt;
  }
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}

}  // namespace

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
  const auto [next, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), result.number);
  const bool is_plain = digits.front() != '-' && (digits.front() != '0' || digits.size() == 1);
  return error == std::errc() && next == digits.data() + digits.size() && is_plain
             ? std::optional(result)
             : std::nullopt;
}

std::string PartName::sibling(int other) const {
  return fmt::format("{}-{:0{}}-of-{}{}", stem, other, width, total, suffix);
}

std::optional<PartName> part_name(std::string_view name, std::string_view suffix) {
  constexpr std::string_view kOf = "-of-";
  if (!name.ends_with(suffix)) {
    return std::nullopt;
  }
  const std::string_view whole = name.substr(0, name.size() - suffix.size());
  const auto of = whole.rfind(kOf);
  const auto dash =
      of == 0 || of == std::string_view::npos ? std::string_view::npos : whole.rfind('-', of - 1);
  if (dash == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view digits = whole.substr(dash + 1, of - dash - 1);
  const std::string_view total = whole.substr(of + kOf.size());
  const auto number = small_number(digits);
  const auto count = small_number(total);
  if (!number || !count || *number < 1 || *number > *count) {
    return std::nullopt;
  }
  return PartName{
      .stem = std::string(whole.substr(0, dash)),
      .number = *number,
      .count = *count,
      .width = digits.size(),
      .total = std::string(total),
      .suffix = std::string(suffix),
  };
}

}  // namespace saker

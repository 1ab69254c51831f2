// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers that Python accepts in JSON and the standard does not: NaN, infinities, floats beyond a
// double's range (infinite, as in Python), and integers beyond 64 bits, whose digits are kept.
// `parse_json` reads them; typed look-ups refuse non-finite ones.

#include "saker/base/json/json.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker {

// Maximum digits of an integer, as in Python.
inline constexpr std::size_t kMaxJsonDigits = 4300;

// The tag under which `Json` holds an integer's decimal digits as bytes.
inline constexpr std::uint8_t kJsonDigitsTag = 100;

// An integer from its digits, which may have a sign. Throws kCorruptData beyond kMaxJsonDigits.
Json json_integer(std::string_view digits, std::string_view what);

// The digits of an integer beyond 64 bits; empty for other values.
std::optional<std::string_view> json_digits(const Json& value);

// A text in which numbers that the parser does not accept are replaced by placeholders.
struct NumberedText {
  std::string text;
  std::vector<Json> numbers;  // The replaced values; empty if nothing had to change.

  // The value that a placeholder stands for; null for any other number.
  const Json* find(std::string_view number) const;
};

// Throws kCorruptData for an integer beyond kMaxJsonDigits.
NumberedText with_plain_numbers(std::string_view text, std::string_view what);

// JSON text in one line, or with `indent` spaces per level. Numbers that JSON lacks are written as
// Python does. Invalid UTF-8 becomes replacement characters.
std::string write_json(const Json& value, std::optional<int> indent = std::nullopt);

}  // namespace saker

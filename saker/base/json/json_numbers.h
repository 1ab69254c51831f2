// SPDX-License-Identifier: Apache-2.0
#pragma once

// Numbers that Python reads and writes as JSON, and JSON has no words for: NaN, infinities, floats
// beyond the range of a double (infinite, as in Python), and integers beyond 64 bits, whose digits
// are kept. `parse_json` reads them; typed look-ups refuse those that are not finite.

#include "saker/base/json.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker {

// Digits of one integer that we read at most, as in Python.
inline constexpr std::size_t kMaxJsonDigits = 4300;

// The tag under which `Json` holds an integer's decimal digits as bytes.
inline constexpr std::uint8_t kJsonDigitsTag = 100;

// An integer from its digits, which may have a sign. Throws kCorruptData beyond kMaxJsonDigits.
Json json_integer(std::string_view digits, std::string_view what);

// The digits of an integer beyond 64 bits; none for other values.
std::optional<std::string_view> json_digits(const Json& value);

// A text in which the parser finds numbers that it takes instead of those that it does not.
struct NumberedText {
  std::string text;
  std::vector<Json> numbers;  // Their values; empty where nothing had to change.

  // The value of a number that stands for another one; null for any other number.
  const Json* find(std::string_view number) const;
};

// Throws kCorruptData for an integer beyond kMaxJsonDigits.
NumberedText with_plain_numbers(std::string_view text, std::string_view what);

// JSON text in one line, or with `indent` spaces a level; numbers that JSON lacks as Python writes
// them. Bytes that are no UTF-8 become replacement characters.
std::string write_json(const Json& value, std::optional<int> indent = std::nullopt);

}  // namespace saker

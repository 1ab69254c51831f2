// SPDX-License-Identifier: Apache-2.0
#include "saker/base/json/json_numbers.h"

#include "saker/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace saker {
namespace {

// Starts a placeholder; no writer writes zero like this. The index in `numbers` follows.
constexpr std::string_view kPlaceholder = "0e-9999";

constexpr std::string_view kPunctuation = ",:[]{}\" \t\r\n";

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view without_sign(std::string_view text) {
  text.remove_prefix(text.starts_with('-') ? 1 : 0);
  return text;
}

// True if the text is a JSON number that is no integer.
bool is_float(std::string_view text) {
  const auto digits_end = [&](std::size_t from) {
    return std::min(text.find_first_not_of("0123456789", from), text.size());
  };
  text = without_sign(text);
  std::size_t at = digits_end(0);
  if (at == 0 || (at > 1 && text[0] == '0')) {
    return false;
  }
  const std::size_t whole = at;
  if (at < text.size() && text[at] == '.') {
    const std::size_t end = digits_end(at + 1);
    if (end == at + 1) {
      return false;
    }
    at = end;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    at += at < text.size() && (text[at] == '+' || text[at] == '-') ? 1 : 0;
    const std::size_t end = digits_end(at);
    if (end == at) {
      return false;
    }
    at = end;
  }
  return at == text.size() && at > whole;
}

// The value of a token that the parser cannot read or would take for a placeholder.
std::optional<Json> special(std::string_view token, std::string_view what) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (token == "NaN") {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (token == "Infinity" || token == "-Infinity") {
    return token.front() == '-' ? -kInfinity : kInfinity;
  }
  const std::string_view size = without_sign(token);
  if (is_digits(size)) {
    // The parser reads longer ones as floats, and fails for 309 digits.
    return size.size() > 300 && size.front() != '0' ? std::optional(json_integer(token, what))
                                                    : std::nullopt;
  }
  if (!is_float(token)) {
    return std::nullopt;
  }
  const double number = std::strtod(std::string(token).c_str(), nullptr);
  return std::isfinite(number) && !token.starts_with(kPlaceholder) ? std::nullopt
                                                                   : std::optional<Json>(number);
}

// The end of the string that starts at `at`.
std::size_t string_end(std::string_view text, std::size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    at += text[at] == '\\' ? 1 : 0;
  }
  return std::min(at + 1, text.size());
}

}  // namespace

Json json_integer(std::string_view digits, std::string_view what) {
  const std::size_t count = without_sign(digits).size();
  require(
      count <= kMaxJsonDigits,
      ErrorCode::kCorruptData,
      "{}: an integer of {} digits, expected at most {}",
      what,
      count,
      kMaxJsonDigits
  );
  return Json::binary({digits.begin(), digits.end()}, kJsonDigitsTag);
}

std::optional<std::string_view> json_digits(const Json& value) {
  if (!value.is_binary()) {
    return std::nullopt;
  }
  const auto& bytes = value.get_binary();
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

const Json* NumberedText::find(std::string_view number) const {
  if (!number.starts_with(kPlaceholder)) {
    return nullptr;
  }
  number.remove_prefix(kPlaceholder.size());
  std::size_t index = numbers.size();
  std::from_chars(number.data(), number.data() + number.size(), index);
  return index < numbers.size() ? &numbers[index] : nullptr;
}

NumberedText with_plain_numbers(std::string_view text, std::string_view what) {
  NumberedText plain;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '"') {
      at = string_end(text, at);
      continue;
    }
    const std::size_t end = std::min(text.find_first_of(kPunctuation, at), text.size());
    if (end == at) {
      ++at;
      continue;
    }
    if (auto value = special(text.substr(at, end - at), what)) {
      plain.text += text.substr(copied, at - copied);
      plain.text += fmt::format("{}{}", kPlaceholder, plain.numbers.size());
      plain.numbers.push_back(std::move(*value));
      copied = end;
    }
    at = end;
  }
  plain.text += text.substr(copied);
  return plain;
}

}  // namespace saker

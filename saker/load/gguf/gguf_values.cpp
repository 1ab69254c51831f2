// SPDX-License-Identifier: Apache-2.0
// The look-ups of Header. parse_gguf has checked the values, and nobody else can change them.
#include "saker/base/error.h"
#include "saker/load/gguf/gguf_file.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {
namespace {

constexpr std::array<std::string_view, 13> kValueNames = {
    "uint8",
    "int8",
    "uint16",
    "int16",
    "uint32",
    "int32",
    "float32",
    "bool",
    "string",
    "array",
    "uint64",
    "int64",
    "float64",
};

std::string value_name(const Value& value) {
  const std::string_view name = kValueNames.at(static_cast<std::size_t>(value.type));
  return value.is_array ? fmt::format("an array of {}", name) : fmt::format("of type {}", name);
}

// A string is stored as its length and its bytes.
std::string_view text_at(std::span<const std::byte> bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return {reinterpret_cast<const char*>(bytes.data() + sizeof(length)), length};
}

// Element `index` of numbers or booleans.
double number_of(const Value& value, std::size_t index) {
  const auto read = [&]<typename T>(T number) {
    std::memcpy(&number, value.bytes.data() + index * sizeof(T), sizeof(T));
    return static_cast<double>(number);
  };
  switch (value.type) {
    case ValueType::kUInt8:
    case ValueType::kBool:
      return read(std::uint8_t{});
    case ValueType::kInt8:
      return read(std::int8_t{});
    case ValueType::kUInt16:
      return read(std::uint16_t{});
    case ValueType::kInt16:
      return read(std::int16_t{});
    case ValueType::kUInt32:
      return read(std::uint32_t{});
    case ValueType::kInt32:
      return read(std::int32_t{});
    case ValueType::kUInt64:
      return read(std::uint64_t{});
    case ValueType::kInt64:
      return read(std::int64_t{});
    case ValueType::kFloat32:
      return read(float{});
    default:
      return read(double{});
  }
}

bool is_number(ValueType type) {
  return type != ValueType::kString && type != ValueType::kArray && type != ValueType::kBool;
}

bool is_integer(ValueType type) {
  return is_number(type) && type != ValueType::kFloat32 && type != ValueType::kFloat64;
}

}  // namespace

void Header::fail(std::string_view key, std::string_view expected) const {
  throw Error(
      ErrorCode::kCorruptData,
      fmt::format(
          "{}: '{}' is {}, expected {}",
          what_,
          key,
          value_name(metadata_.find(key)->second),
          expected
      )
  );
}

const Value* Header::find(std::string_view key, bool array) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) {
    return nullptr;
  }
  if (found->second.is_array != array) {
    fail(key, array ? "an array" : "a single value");
  }
  return &found->second;
}

bool Header::is_array(std::string_view key) const {
  const auto found = metadata_.find(key);
  return found != metadata_.end() && found->second.is_array;
}

std::optional<std::int64_t> Header::integer(std::string_view key) const {
  const Value* value = find(key, false);
  if (value == nullptr) {
    return std::nullopt;
  }
  // Doubles hold all sizes and ids of real files; larger numbers are invalid.
  constexpr double kLargest = 9007199254740992.0;
  if (!is_integer(value->type) || std::abs(number_of(*value, 0)) > kLargest) {
    fail(key, "an integer below 2^53");
  }
  return static_cast<std::int64_t>(number_of(*value, 0));
}

std::optional<double> Header::number(std::string_view key) const {
  const Value* value = find(key, false);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!is_number(value->type)) {
    fail(key, "a number");
  }
  const double number = number_of(*value, 0);
  if (value->type != ValueType::kFloat32) {
    return number;
  }
  // Gives 1e-6, not its float32 approximation.
  const std::string text = fmt::format("{}", static_cast<float>(number));
  double shortest = number;
  std::from_chars(text.data(), text.data() + text.size(), shortest);
  return shortest;
}

std::optional<bool> Header::boolean(std::string_view key) const {
  const Value* value = find(key, false);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (value->type != ValueType::kBool) {
    fail(key, "of type bool");
  }
  return number_of(*value, 0) != 0;
}

std::optional<std::string_view> Header::string(std::string_view key) const {
  const Value* value = find(key, false);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (value->type != ValueType::kString) {
    fail(key, "of type string");
  }
  return text_at(value->bytes);
}

std::vector<std::string_view> Header::strings(std::string_view key) const {
  std::vector<std::string_view> result;
  const Value* value = find(key, true);
  if (value == nullptr) {
    return result;
  }
  if (value->type != ValueType::kString) {
    fail(key, "an array of strings");
  }
  std::span<const std::byte> rest = value->bytes;
  for (std::uint64_t i = 0; i < value->count; ++i) {
    result.push_back(text_at(rest));
    rest = rest.subspan(sizeof(std::uint64_t) + result.back().size());
  }
  return result;
}

std::vector<double> Header::numbers(std::string_view key) const {
  std::vector<double> result;
  const Value* value = find(key, true);
  if (value == nullptr) {
    return result;
  }
  if (!is_number(value->type)) {
    fail(key, "an array of numbers");
  }
  result.reserve(value->count);
  for (std::uint64_t i = 0; i < value->count; ++i) {
    result.push_back(number_of(*value, i));
  }
  return result;
}

std::vector<bool> Header::booleans(std::string_view key) const {
  std::vector<bool> result;
  const Value* value = find(key, true);
  if (value == nullptr) {
    return result;
  }
  if (value->type != ValueType::kBool) {
    fail(key, "an array of bool");
  }
  result.reserve(value->count);
  for (std::uint64_t i = 0; i < value->count; ++i) {
    result.push_back(number_of(*value, i) != 0);
  }
  return result;
}

std::vector<std::string> Header::keys(std::string_view prefix) const {
  std::vector<std::string> result;
  for (auto at = metadata_.lower_bound(prefix); at != metadata_.end(); ++at) {
    if (!at->first.starts_with(prefix)) {
      break;
    }
    result.push_back(at->first);
  }
  return result;
}

}  // namespace saker::load::gguf

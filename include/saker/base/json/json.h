// SPDX-License-Identifier: Apache-2.0
#pragma once

// JSON from outside: bounded parsing, and typed look-ups whose errors name the field, the value and
// the expected type.

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace saker {

// Objects keep the order of their members.
using Json = nlohmann::ordered_json;

// Limits for JSON that we read: bytes, nesting depth, number of values.
inline constexpr std::size_t kMaxJsonBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMaxJsonDepth = 200;  // Arrays and objects in each other.
inline constexpr std::size_t kMaxJsonValues = std::size_t{4} << 20;  // In the whole text.

// How to read an object that repeats a key.
enum class RepeatedKeys : std::uint8_t {
  kLastWins,  // As Python does.
  kRefuse,    // Throws kCorruptData.
};

// `what` names the source in messages. Throws kCorruptData with position and reason. Numbers are
// read as Python does (json/json_numbers.h). Time and memory are linear in the text's length.
Json parse_json(
    std::string_view text, std::string_view what, RepeatedKeys repeated = RepeatedKeys::kLastWins
);
// Throws kNotFound, kInvalidArgument (not a regular file) or kCorruptData.
Json read_json_file(const std::filesystem::path& path);

// True if the object has the key with a value other than null.
bool json_has(const Json& object, std::string_view key);

// Typed members of an object; `fallback` if the key is absent or null. Throw kCorruptData for a
// value of another type.
std::int64_t json_int(const Json& object, std::string_view key, std::int64_t fallback);
// As json_int, for any number.
double json_double(const Json& object, std::string_view key, double fallback);
// As json_int.
bool json_bool(const Json& object, std::string_view key, bool fallback);
// As json_int.
std::string json_string(const Json& object, std::string_view key, std::string_view fallback);

// A required integer in [low, high].
std::int64_t json_int_in(
    const Json& object, std::string_view key, std::int64_t low, std::int64_t high
);

// A value for messages: short, one line.
std::string describe_json(const Json& value);

// The member of an object; null if there is none, or the value is no object.
inline const Json* find_member(const Json& value, std::string_view key) {
  if (!value.is_object()) {
    return nullptr;
  }
  const auto found = value.find(key);
  return found == value.end() ? nullptr : &*found;
}

}  // namespace saker

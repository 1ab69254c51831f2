// SPDX-License-Identifier: Apache-2.0
#pragma once

// JSON from outside: bounded parsing and typed look-ups whose errors name the field, the value and
// what was expected.

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace saker {

using Json = nlohmann::ordered_json;

// Bytes, nesting and values that we read at most.
inline constexpr std::size_t kMaxJsonBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMaxJsonDepth = 200;
inline constexpr std::size_t kMaxJsonValues = std::size_t{4} << 20;

// What an object that repeats a key means.
enum class RepeatedKeys : std::uint8_t {
  kLastWins,  // As Python reads it.
  kRefuse,    // kCorruptData.
};

// `what` names the source in messages. Throws kCorruptData with position and reason. Numbers are
// Python's (json/json_numbers.h). Time and memory grow with the text's length only.
Json parse_json(
    std::string_view text, std::string_view what, RepeatedKeys repeated = RepeatedKeys::kLastWins
);
// Throws kNotFound, kInvalidArgument (no regular file) or kCorruptData.
Json read_json_file(const std::filesystem::path& path);

// Whether the object has the key, with another value than null.
bool json_has(const Json& object, std::string_view key);

// Typed members of an object; `fallback` where the key is absent or null. Throw kCorruptData
// otherwise.
std::int64_t json_int(const Json& object, std::string_view key, std::int64_t fallback);
double json_double(const Json& object, std::string_view key, double fallback);
bool json_bool(const Json& object, std::string_view key, bool fallback);
std::string json_string(const Json& object, std::string_view key, std::string_view fallback);

// A required integer in [low, high].
std::int64_t json_int_in(
    const Json& object, std::string_view key, std::int64_t low, std::int64_t high
);

// A value as messages show it: short, one line.
std::string describe_json(const Json& value);

}  // namespace saker

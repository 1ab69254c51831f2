// SPDX-License-Identifier: Apache-2.0
#include "saker/server/models/keep_alive.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/server/turns/fields.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

namespace saker::server {
namespace {

constexpr std::string_view kExpected = "expected seconds or a duration such as 10m, 0 or -1";

// Longer ones are as good as for ever.
constexpr double kLongest = 100.0 * 365 * 86'400;

engine::KeepAlive of_seconds(double seconds) {
  if (seconds < 0 || seconds >= kLongest) {
    return std::nullopt;
  }
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

// The seconds of a unit that `text` begins with, which is taken away; 0: none.
double take_unit(std::string_view& text) {
  constexpr std::array<std::pair<std::string_view, double>, 7> kUnits = {{
      {"ns", 1e-9},
      {"us", 1e-6},
      {"µs", 1e-6},
      {"ms", 1e-3},
      {"h", 3600},
      {"m", 60},
      {"s", 1},
  }};
  for (const auto& [name, seconds] : kUnits) {
    if (text.starts_with(name)) {
      text.remove_prefix(name.size());
      return seconds;
    }
  }
  return 0;
}

std::optional<double> parse_seconds(std::string_view text) {
  double sign = 1;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    sign = text.front() == '-' ? -1 : 1;
    text.remove_prefix(1);
  }
  double seconds = 0;
  bool is_first = true;
  do {
    double number = 0;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc() || number < 0 || !std::isfinite(number)) {
      return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const double unit = is_first && text.empty() ? 1 : take_unit(text);
    if (unit == 0) {
      return std::nullopt;
    }
    seconds += number * unit;
    is_first = false;
  } while (!text.empty());
  return sign * seconds;
}

}  // namespace

engine::KeepAlive parse_keep_alive(std::string_view text) {
  const std::optional<double> seconds = parse_seconds(text);
  require(seconds.has_value(), ErrorCode::kInvalidArgument, "{}, got {}", kExpected, quote(text));
  return of_seconds(*seconds);
}

std::optional<engine::KeepAlive> read_keep_alive(const Json& body) {
  for (const char* name : {"keep_alive", "ttl"}) {
    const auto found = body.find(name);
    if (found == body.end() || found->is_null()) {
      continue;
    }
    if (found->is_number()) {
      return of_seconds(found->get<double>());
    }
    if (found->is_string()) {
      if (const auto seconds = parse_seconds(found->get_ref<const std::string&>())) {
        return of_seconds(*seconds);
      }
    }
    throw bad_field(name, "{}, got {}", kExpected, describe_json(*found));
  }
  return std::nullopt;
}

}  // namespace saker::server

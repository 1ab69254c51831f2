// SPDX-License-Identifier: Apache-2.0
#include "saker/server/spans/sampler.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <system_error>

namespace saker::server::spans {
namespace {

double parse_ratio(std::string_view text) {
  double ratio = 1.0;
  const char* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data(), end, ratio);
  require(
      text.empty() || (failed == std::errc() && rest == end && ratio >= 0.0 && ratio <= 1.0),
      ErrorCode::kInvalidArgument,
      "OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1, got {}",
      quote(text)
  );
  return text.empty() ? 1.0 : ratio;
}

}  // namespace

bool Sampler::samples(std::optional<bool> parent, std::string_view trace) const {
  if (parent && follows_parent) {
    return *parent;
  }
  // The last 56 bits of a trace's id are random.
  constexpr std::size_t kDigits = 14;
  constexpr double kAll = 72057594037927936.0;
  const std::string_view digits = trace.substr(trace.size() - std::min(kDigits, trace.size()));
  std::uint64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  return number < static_cast<std::uint64_t>(ratio * kAll);
}

Sampler parse_sampler(std::string_view name, std::string_view argument) {
  constexpr std::string_view kParent = "parentbased_";
  const bool follows = name.empty() || name.starts_with(kParent);
  const std::string_view kind = name.empty() ? "always_on"
                                : follows    ? name.substr(kParent.size())
                                             : name;
  if (kind == "always_on") {
    return {.ratio = 1.0, .follows_parent = follows};
  }
  if (kind == "always_off") {
    return {.ratio = 0.0, .follows_parent = follows};
  }
  require(
      kind == "traceidratio",
      ErrorCode::kInvalidArgument,
      "OTEL_TRACES_SAMPLER: expected always_on, always_off or traceidratio, or one of these behind "
      "parentbased_, got {}",
      quote(name)
  );
  return {.ratio = parse_ratio(argument), .follows_parent = follows};
}

}  // namespace saker::server::spans

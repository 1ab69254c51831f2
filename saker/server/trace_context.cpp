// SPDX-License-Identifier: Apache-2.0
#include "saker/server/trace_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <random>

namespace saker::server {
namespace {

constexpr std::size_t kTraceAt = 3;
constexpr std::size_t kTraceDigits = 32;
constexpr std::size_t kParentAt = 36;
constexpr std::size_t kParentDigits = 16;
constexpr std::size_t kFlagsAt = 53;
constexpr std::size_t kLength = 55;

bool are_digits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

bool is_zero(std::string_view digits) {
  return digits.find_first_not_of('0') == std::string_view::npos;
}

}  // namespace

std::string TraceContext::header(std::string_view span) const {
  return fmt::format("00-{}-{}-{}", trace, span, flags);
}

std::optional<TraceContext> read_trace_context(std::string_view header) {
  if (header.size() < kLength) {
    return std::nullopt;
  }
  const std::string_view version = header.substr(0, 2);
  // Later versions may add parts.
  const bool has_right_end =
      header.size() == kLength || (version != "00" && header[kLength] == '-');
  const std::string_view trace = header.substr(kTraceAt, kTraceDigits);
  const std::string_view parent = header.substr(kParentAt, kParentDigits);
  const std::string_view flags = header.substr(kFlagsAt, 2);
  const bool is_valid =
      has_right_end && header[kTraceAt - 1] == '-' && header[kParentAt - 1] == '-' &&
      header[kFlagsAt - 1] == '-' && are_digits(version) && version != "ff" && are_digits(trace) &&
      !is_zero(trace) && are_digits(parent) && !is_zero(parent) && are_digits(flags);
  return is_valid ? std::optional(
                        TraceContext{std::string(trace), std::string(parent), std::string(flags)}
                    )
                  : std::nullopt;
}

bool is_sampled(const TraceContext& context) {
  constexpr std::string_view kOdd = "13579bdf";
  return kOdd.find(context.flags.back()) != std::string_view::npos;
}

std::string new_trace() {
  return new_span() + new_span();
}

std::string new_span() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random() | 1U);
}

}  // namespace saker::server

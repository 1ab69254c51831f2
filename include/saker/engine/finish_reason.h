// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reasons for the end of an answer.

#include <cstdint>
#include <string_view>

namespace saker::engine {

// The end of an answer: by itself, by a limit, by `cancel`, or because its time was up.
enum class FinishReason : std::uint8_t { kStop, kLength, kCancelled, kDeadline };

// The names in records and bindings.
constexpr std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
  }
  return "";
}

}  // namespace saker::engine

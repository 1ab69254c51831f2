// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reasons for the end of an answer.

#include <cstdint>
#include <string_view>

namespace saker::engine {

// The end of an answer: by itself, by a limit, by `cancel`, because its time was up, or by itself
// with a whole tool call.
enum class FinishReason : std::uint8_t { kStop, kLength, kCancelled, kDeadline, kToolCalls };

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
    case FinishReason::kToolCalls:
      return "tool_calls";
  }
  return "";
}

}  // namespace saker::engine

// SPDX-License-Identifier: Apache-2.0
#include "saker/base/error.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace saker {
namespace {

// Errors are one line whatever text from outside they quote.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' '
  );
  return text;
}

}  // namespace

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalid_argument";
    case ErrorCode::kNotFound:
      return "not_found";
    case ErrorCode::kUnsupported:
      return "unsupported";
    case ErrorCode::kCorruptData:
      return "corrupt_data";
    case ErrorCode::kCapacity:
      return "capacity";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "internal";
}

Error::Error(ErrorCode code, const std::string& message, std::source_location where)
    : std::runtime_error(one_line(message)), code_(code), where_(where) {}

}  // namespace saker

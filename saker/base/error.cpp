// SPDX-License-Identifier: Apache-2.0
#include "saker/base/error.h"

#include "saker/base/characters/printable.h"

#include <string>
#include <string_view>
#include <system_error>

namespace saker {

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

std::string system_reason(int error) {
  return std::generic_category().message(error);
}

Error::Error(ErrorCode code, const std::string& message, std::source_location where)
    : std::runtime_error(printable_line(message)), code_(code), where_(where) {}

}  // namespace saker

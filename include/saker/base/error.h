// SPDX-License-Identifier: Apache-2.0
#pragma once

// Typed errors. All input from outside (files, flags, requests) fails with one `Error`. It has a
// code that programs can switch on, and one line for people, "[where] what, got x, expected y".
// `assert` is for our own invariants.

#include <fmt/format.h>

#include <cstdint>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace saker {

// The kind of a failure.
enum class ErrorCode : std::uint8_t {
  kInvalidArgument,  // The caller's fault: a flag, a request, a prompt.
  kNotFound,         // A model, adapter or file is missing.
  kUnsupported,      // Valid, but this build or model cannot do it.
  kCorruptData,      // A file or checkpoint breaks its format.
  kCapacity,         // Memory or a queue is full: try later.
  kCancelled,        // The caller went away: no answer.
  kInternal,         // Our bug.
};

// The system's words for an errno value.
std::string system_reason(int error);

// The code's name in logs and JSON: "invalid_argument", "not_found", ...
std::string_view error_code_name(ErrorCode code);

// A failure with its kind, one line for people, and its place in our sources.
class Error : public std::runtime_error {
 public:
  // `message` is shown as it is, made printable.
  Error(
      ErrorCode code,
      const std::string& message,
      std::source_location where = std::source_location::current()
  );

  ErrorCode code() const { return code_; }

  // The place in our sources that made the error; for logs of internal errors.
  const std::source_location& where() const { return where_; }

 private:
  ErrorCode code_;
  std::source_location where_;
};

// Throws Error{code, message} unless `ok`. The message is a fmt format string with its arguments,
// formatted only on failure.
template <typename... Args>
void require(bool ok, ErrorCode code, fmt::format_string<Args...> message, Args&&... args) {
  if (!ok) {
    throw Error(code, fmt::format(message, std::forward<Args>(args)...));
  }
}

}  // namespace saker

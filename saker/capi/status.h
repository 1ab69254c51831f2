// SPDX-License-Identifier: Apache-2.0
#pragma once

// The border of the C interface: exceptions become statuses and one line for people.

#include "saker/base/error.h"
#include "saker/base/json/json.h"

#include <saker.h>

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct SakerText {
  std::string bytes;
};

struct SakerTokens {
  std::vector<std::int32_t> ids;
};

namespace saker::capi {

// A failure as programs and people see it.
struct Outcome {
  SakerStatus status = SAKER_INTERNAL;
  std::string line = {};
};

// REQUIRES: an exception.
Outcome outcome_of(const std::exception_ptr& error);

// Writes the line of the exception that is being handled; null without memory for it.
SakerStatus failed(SakerText** message) noexcept;

// Runs the body of a function of the interface.
template <typename Call>
SakerStatus guarded(SakerText** message, Call call) noexcept {
  if (message != nullptr) {
    *message = nullptr;
  }
  try {
    return call();
  } catch (...) {
    return failed(message);
  }
}

// Throws kInvalidArgument for null.
template <typename T>
T& required(T* value, std::string_view name) {
  require(value != nullptr, ErrorCode::kInvalidArgument, "{}: got a null pointer", name);
  return *value;
}

// As above, for a place that takes a result, which is null from now on.
template <typename T>
T*& cleared(T** out) {
  required(out, "the place of the result") = nullptr;
  return *out;
}

// Makes the log write to standard error, once for the process.
void log_once();

// Text from a program; null is none. Throws kInvalidArgument for text that is not UTF-8.
std::string_view text_or_empty(const char* text, std::string_view name);

SakerStatus give(std::string text, SakerText*& out);
SakerStatus give(const Json& json, SakerText*& out);
SakerStatus give(std::vector<std::int32_t> ids, SakerTokens*& out);

}  // namespace saker::capi

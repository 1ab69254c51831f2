// SPDX-License-Identifier: Apache-2.0
#include "saker/capi/status.h"

#include "saker/base/json/json_numbers.h"
#include "saker/base/memory.h"
#include "saker/base/utf8.h"
#include "saker/engine/logging.h"

#include <mutex>
#include <utility>

namespace saker::capi {
namespace {

SakerStatus status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return SAKER_INVALID_ARGUMENT;
    case ErrorCode::kNotFound:
      return SAKER_NOT_FOUND;
    case ErrorCode::kUnsupported:
      return SAKER_UNSUPPORTED;
    case ErrorCode::kCorruptData:
      return SAKER_CORRUPT_DATA;
    case ErrorCode::kCapacity:
      return SAKER_CAPACITY;
    case ErrorCode::kCancelled:
      return SAKER_CANCELLED;
    case ErrorCode::kInternal:
      return SAKER_INTERNAL;
  }
  return SAKER_INTERNAL;
}

}  // namespace

Outcome outcome_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& ours) {
    return {status_of(ours.code()), ours.what()};
  } catch (const std::exception& other) {
    if (const auto reason = out_of_memory_reason(other)) {
      return {SAKER_CAPACITY, std::string(*reason)};
    }
    return {SAKER_INTERNAL, other.what()};
  } catch (...) {
    return {SAKER_INTERNAL, "an unknown error"};
  }
}

SakerStatus failed(SakerText** message) noexcept {
  try {
    Outcome outcome = outcome_of(std::current_exception());
    if (message != nullptr) {
      *message = new SakerText{std::move(outcome.line)};
    }
    return outcome.status;
  } catch (...) {
    return SAKER_CAPACITY;
  }
}

void log_once() {
  static std::once_flag once;
  std::call_once(once, log_to_stderr);
}

std::string_view text_or_empty(const char* text, std::string_view name) {
  if (text == nullptr) {
    return {};
  }
  require_utf8(text, name);
  return text;
}

SakerStatus give(std::string text, SakerText*& out) {
  out = new SakerText{std::move(text)};
  return SAKER_OK;
}

SakerStatus give(const Json& json, SakerText*& out) {
  return give(write_json(json), out);
}

SakerStatus give(std::vector<std::int32_t> ids, SakerTokens*& out) {
  out = new SakerTokens{std::move(ids)};
  return SAKER_OK;
}

}  // namespace saker::capi

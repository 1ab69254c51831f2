// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/api_error.h"

#include "saker/base/error.h"

#include <spdlog/spdlog.h>

#include <new>

namespace saker::server {
namespace {

constexpr int kRetryAfter = 5;  // Seconds.

ApiError from_error(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kInvalidArgument:
      return ApiError(400, error.what()).with_code("invalid_value");
    case ErrorCode::kUnsupported:
      return ApiError(400, error.what()).with_code("unsupported_value");
    case ErrorCode::kNotFound:
      return ApiError(404, error.what());
    case ErrorCode::kCapacity:
      return ApiError(429, error.what())
          .with_code("rate_limit_exceeded")
          .with_retry_after(kRetryAfter);
    case ErrorCode::kCancelled:
      return {499, error.what()};
    case ErrorCode::kCorruptData:
    case ErrorCode::kInternal:
      break;
  }
  return {500, error.what()};
}

}  // namespace

ApiError as_api_error(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const ApiError& found) {
    return found;
  } catch (const Error& found) {
    return from_error(found);
  } catch (const std::bad_alloc&) {
    return ApiError(503, "there is not enough memory for this request")
        .with_retry_after(kRetryAfter);
  } catch (const std::exception& found) {
    spdlog::error("a request failed: {}", found.what());
    return {500, "the request failed; the server's log has the reason"};
  }
}

}  // namespace saker::server

// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/http/response_error.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace saker::hub {
namespace {

std::string reason_of(const ResponseHead& head, bool has_token) {
  const std::string_view code = head.header("x-error-code");
  const std::string_view token =
      has_token ? "the token (HF_TOKEN or the token file) gives no access"
                : "a private or gated model needs a token in HF_TOKEN or the token file";
  if (code == "GatedRepo") {
    return fmt::format("the model is gated: agree to its terms on its page; {}", token);
  }
  if (code == "RevisionNotFound") {
    return "there is no such revision";
  }
  if (code == "EntryNotFound") {
    return "there is no such file";
  }
  if (head.status == 401 || head.status == 403 || code == "RepoNotFound") {
    return fmt::format("there is no such model, or {}", token);
  }
  const std::string_view message = head.header("x-error-message");
  return message.empty() ? "the hub refuses" : "the hub says " + quote(message);
}

ErrorCode code_of(int status) {
  if (status == 401 || status == 403 || status == 404) {
    return ErrorCode::kNotFound;
  }
  return status == 429 ? ErrorCode::kCapacity : ErrorCode::kUnsupported;
}

}  // namespace

bool is_passing(int status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 ||
         status == 504;
}

void throw_response_error(const ResponseHead& head, std::string_view what, bool has_token) {
  throw Error(
      code_of(head.status),
      fmt::format("{}: {} (HTTP {})", what, reason_of(head, has_token), head.status)
  );
}

}  // namespace saker::hub

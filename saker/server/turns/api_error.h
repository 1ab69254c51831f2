// SPDX-License-Identifier: Apache-2.0
#pragma once

// A request that is answered by an error, before each dialect gives it its shape.

#include "saker/base/json/json.h"

#include <fmt/format.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

namespace saker::server {

class ApiError : public std::runtime_error {
 public:
  ApiError(int status, const std::string& message) : std::runtime_error(message), status_(status) {}

  // The field at fault, such as "messages[2].role".
  ApiError&& with_param(std::string param) && {
    param_ = std::move(param);
    return std::move(*this);
  }

  // OpenAI's word for the reason, such as "context_length_exceeded".
  ApiError&& with_code(std::string code) && {
    code_ = std::move(code);
    return std::move(*this);
  }

  // Seconds after which a client may try again.
  ApiError&& with_retry_after(int seconds) && {
    retry_after_ = seconds;
    return std::move(*this);
  }

  // Tokens of a prompt that is too long, and of the context.
  ApiError&& with_counts(std::int64_t prompt, std::int64_t context) && {
    prompt_tokens_ = prompt;
    context_tokens_ = context;
    return std::move(*this);
  }

  int status() const { return status_; }

  const std::string& param() const { return param_; }

  const std::string& code() const { return code_; }

  int retry_after() const { return retry_after_; }  // 0: nothing is said.

  std::int64_t prompt_tokens() const { return prompt_tokens_; }

  std::int64_t context_tokens() const { return context_tokens_; }  // 0: not about the context.

 private:
  int status_;
  std::string param_;
  std::string code_;
  int retry_after_ = 0;
  std::int64_t prompt_tokens_ = 0;
  std::int64_t context_tokens_ = 0;
};

// A 400 for a field.
template <typename... Args>
ApiError bad_field(std::string param, fmt::format_string<Args...> message, Args&&... args) {
  return ApiError(400, param + ": " + fmt::format(message, std::forward<Args>(args)...))
      .with_param(std::move(param))
      .with_code("invalid_value");
}

// The error that a caught exception stands for.
ApiError as_api_error(const std::exception_ptr& error);

}  // namespace saker::server

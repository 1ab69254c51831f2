// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/request_check.h"

#include "saker/base/error.h"
#include "saker/models/token_ids.h"

#include <cstdint>

namespace saker::generate {

void check_request(const SequenceRequest& request, const models::ModelInfo& model) {
  models::check_predicts_tokens(model);
  require(
      !request.prompt.empty(),
      ErrorCode::kInvalidArgument,
      "the prompt is empty: expected at least one token"
  );
  require(
      model.context_length <= 0 ||
          request.unknown_rows <=
              model.context_length - static_cast<std::int64_t>(request.prompt.size()),
      ErrorCode::kInvalidArgument,
      "the prompt has {} tokens, but the model's context is {} tokens long",
      request.unknown_rows + static_cast<std::int64_t>(request.prompt.size()),
      model.context_length
  );
  models::check_token_ids(model, request.prompt);
  require(
      request.max_tokens >= 1,
      ErrorCode::kInvalidArgument,
      "max_tokens: got {}, expected 1 or more, or -1 for no limit",
      request.max_tokens
  );
  require(
      request.logprobs >= -1 && request.logprobs <= model.vocab_size,
      ErrorCode::kInvalidArgument,
      "logprobs: got {}, expected 0 to the vocabulary's {}, or -1 for none",
      request.logprobs,
      model.vocab_size
  );
  require(
      request.max_kv_size >= 0,
      ErrorCode::kInvalidArgument,
      "max_kv_size: got {}, expected 0 or more",
      request.max_kv_size
  );
  require(
      kernels::is_kv_bits(request.kv_bits),
      ErrorCode::kInvalidArgument,
      "kv_bits: got {}, expected 32, 16, 8 or 4",
      request.kv_bits
  );
}

}  // namespace saker::generate

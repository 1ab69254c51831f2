// SPDX-License-Identifier: Apache-2.0
#include "saker/models/token_ids.h"

#include "saker/base/error.h"

namespace saker::models {

void check_token_ids(const ModelInfo& info, std::span<const std::int32_t> ids) {
  for (const std::int32_t id : ids) {
    require(
        id >= 0 && id < info.vocab_size,
        ErrorCode::kInvalidArgument,
        "token id {} is out of range, expected 0 to {}",
        id,
        info.vocab_size - 1
    );
  }
}

void check_predicts_tokens(const ModelInfo& info) {
  require(
      !info.bidirectional,
      ErrorCode::kUnsupported,
      "[{}] the model only {}, it does not generate: use saker {}",
      info.model_type,
      info.judges_pairs ? "judges pairs of texts" : "embeds texts",
      info.judges_pairs ? "rerank" : "embed"
  );
  require(
      info.has_head,
      ErrorCode::kUnsupported,
      "the model only embeds texts: it has no head, the tensor lm_head.weight"
  );
}

}  // namespace saker::models

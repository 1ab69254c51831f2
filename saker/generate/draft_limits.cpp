// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/draft_limits.h"

#include <algorithm>

namespace saker::generate {

int max_draft_tokens(const RunningSequence& sequence, const models::ModelInfo& model) {
  const std::int64_t tokens = sequence.request.max_tokens - sequence.generated - 1;
  const std::int64_t limit = model.context_length;
  const std::int64_t rows = limit > 0 ? limit - sequence.position() : tokens;
  return static_cast<int>(std::max<std::int64_t>(std::min(tokens, rows), 0));
}

void shorten_draft(
    std::vector<std::int32_t>& tokens,
    const SequenceRequest& request,
    const models::ModelInfo& model
) {
  const std::vector<std::int32_t>& stops = request.stop_tokens;
  const auto is_token = [&model](std::int32_t id) { return id >= 0 && id < model.vocab_size; };
  auto end = std::ranges::find_if(tokens, [&](std::int32_t id) {
    return !is_token(id) || std::ranges::find(stops, id) != stops.end();
  });
  // Rejection must check every drawn token; omitting stop tokens would make them rarer.
  if (request.speculation.acceptance == Acceptance::kRejection && end != tokens.end() &&
      is_token(*end)) {
    ++end;
  }
  tokens.erase(end, tokens.end());
}

}  // namespace saker::generate

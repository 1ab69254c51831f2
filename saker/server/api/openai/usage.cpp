// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/openai/usage.h"

#include <algorithm>

namespace saker::server::openai {

void Usage::add(const engine::GenerateResult& result, std::size_t prompt) {
  prompts_.resize(std::max(prompts_.size(), prompt + 1));
  PromptCount& count = prompts_[prompt];
  count.tokens = result.stats.prompt_tokens;
  count.cached = std::max(count.cached, result.stats.cached_tokens);
  tokens_ += result.stats.generation_tokens;
  reasoning_ += result.stats.reasoning_tokens;
  drafted_ += result.stats.drafted;
  accepted_ += result.stats.accepted;
}

Json Usage::json() const {
  int prompt = 0;
  int cached = 0;
  for (const PromptCount& count : prompts_) {
    prompt += count.tokens;
    cached += count.cached;
  }
  const int tokens = std::max(tokens_, seen_);
  return {
      {"prompt_tokens", prompt},
      {"completion_tokens", tokens},
      {"total_tokens", prompt + tokens},
      {"prompt_tokens_details", {{"cached_tokens", cached}, {"audio_tokens", 0}}},
      {"completion_tokens_details",
       {{"reasoning_tokens", reasoning_},
        {"audio_tokens", 0},
        {"accepted_prediction_tokens", accepted_},
        {"rejected_prediction_tokens", drafted_ - accepted_}}},
  };
}

}  // namespace saker::server::openai

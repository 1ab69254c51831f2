// SPDX-License-Identifier: Apache-2.0
#include "saker/server/api/openai/prompt_logprobs.h"

#include "saker/server/turns/prompt_scores.h"
#include "saker/server/turns/wire.h"
#include "saker/text/tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

namespace saker::server::openai {
namespace {

constexpr int kMostAlternatives = 20;
constexpr std::size_t kMostEntries = 250'000;  // Of an answer: 25 MB.

Json entry(double logprob, Json rank, std::int32_t id, const text::Tokenizer* tokenizer) {
  return {
      {"logprob", finite_logprob(logprob)},
      {"rank", std::move(rank)},
      {"decoded_token", tokenizer == nullptr ? "" : tokenizer->token_bytes(id)},
  };
}

Json list_of(const PromptScores& scores, const text::Tokenizer* tokenizer) {
  Json list = Json::array();
  for (std::size_t i = 0; i < scores.tokens.size(); ++i) {
    if (!scores.logprobs.at(i)) {
      list.push_back(nullptr);
      continue;
    }
    const std::int32_t own = scores.tokens[i];
    Json at = Json::object();
    at[std::to_string(own)] = entry(*scores.logprobs[i], scores.ranks[i], own, tokenizer);
    int rank = 0;
    for (const auto& [id, logprob] : scores.top[i]) {
      ++rank;
      if (id != own) {
        at[std::to_string(id)] = entry(logprob, rank, id, tokenizer);
      }
    }
    list.push_back(std::move(at));
  }
  return list;
}

}  // namespace

std::optional<int> read_prompt_logprobs(Fields& fields, bool streams) {
  const auto top = fields.integer("prompt_logprobs", 0, kMostAlternatives);
  if (top && streams) {
    fields.fail("prompt_logprobs", "does not go with stream");
  }
  return top ? std::optional(static_cast<int>(*top)) : std::nullopt;
}

std::vector<Json> prompt_logprobs(
    const std::vector<engine::Prompt>& prompts,
    const engine::Placement& placement,
    int top,
    const ServedModel& model
) {
  std::vector<std::vector<std::int32_t>> tokens;
  std::size_t entries = 0;
  for (const engine::Prompt& prompt : prompts) {
    tokens.push_back(model.model().prompt_tokens({.prompt = prompt}));
    entries += tokens.back().size() * static_cast<std::size_t>(top + 1);
    if (tokens.back().empty()) {
      throw bad_field("prompt_logprobs", "the prompt has no token");
    }
  }
  if (entries > kMostEntries) {
    throw bad_field(
        "prompt_logprobs", "the answer would have {} numbers, more than {}", entries, kMostEntries
    );
  }
  const PromptScoring wanted{
      .top = top, .ranks = true, .adapter = placement.adapter, .stop = model.stop()
  };
  std::vector<Json> lists;
  for (const PromptScores& scores : score_prompts(model.model(), tokens, wanted)) {
    lists.push_back(list_of(scores, model.model().tokenizer()));
  }
  return lists;
}

}  // namespace saker::server::openai

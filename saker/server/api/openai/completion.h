// SPDX-License-Identifier: Apache-2.0
#pragma once

// POST /v1/completions: continues texts or tokens.

#include "saker/base/json/json.h"
#include "saker/engine/request.h"
#include "saker/server/api/openai/chat_request.h"
#include "saker/server/turns/served_model.h"
#include "saker/server/turns/turn.h"

#include <memory>
#include <optional>
#include <vector>

namespace saker::server::openai {

struct CompletionRequest {
  std::vector<engine::Prompt> prompts;
  engine::Request request;  // Without a prompt.
  Answering answering;
  bool echoes = false;                     // The answer begins with the prompt.
  bool has_no_answer = false;              // max_tokens is 0: the prompt's log-probabilities alone.
  std::vector<Json> prompt_logprobs = {};  // One per prompt, once they are known; or none.
};

// Throws a 400, or a 404 for an unknown model.
CompletionRequest read_completion(const Json& body, const ServedModel& model);

// Scores of a prompt that is echoed.
struct EchoedPrompt {
  std::string text = {};
  std::vector<std::int32_t> tokens = {};
  // Per token, if they were asked for; none for the first.
  std::vector<std::optional<double>> logprobs = {};
  // Per token the best alternatives, if they were asked for.
  std::vector<std::vector<std::pair<std::int32_t, double>>> top = {};
};

// `echoed`: one per prompt, or none.
std::unique_ptr<Encoder> completion_encoder(
    const CompletionRequest& completion,
    std::vector<EchoedPrompt> echoed,
    const text::Tokenizer* tokenizer
);

}  // namespace saker::server::openai

// SPDX-License-Identifier: Apache-2.0
#pragma once

// vLLM's prompt_logprobs: per token of a prompt its log-probability, its rank and the best
// alternatives.

#include "saker/base/json/json.h"
#include "saker/engine/request.h"
#include "saker/server/turns/fields.h"
#include "saker/server/turns/served_model.h"

#include <optional>
#include <vector>

namespace saker::server::openai {

// The member `prompt_logprobs`: the number of alternatives. Throws a 400 beside `streams`.
std::optional<int> read_prompt_logprobs(Fields& fields, bool streams);

// A list per prompt, with null for its first token; each other token has an object whose keys are
// token ids. Waits for the engine: not for the server's thread. Throws a 400 for more numbers than
// an answer may have.
std::vector<Json> prompt_logprobs(
    const std::vector<engine::Prompt>& prompts,
    const engine::Placement& placement,
    int top,
    const ServedModel& model
);

}  // namespace saker::server::openai

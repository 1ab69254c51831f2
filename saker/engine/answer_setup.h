// SPDX-License-Identifier: Apache-2.0
#pragma once

// What an answer is told of its request.

#include "saker/engine/answer.h"
#include "saker/engine/prompts.h"
#include "saker/engine/request.h"

#include <cstdint>
#include <vector>

namespace saker::engine {

// REQUIRES: `prompts` outlives the answer's constructor.
Answer::Setup answer_setup(
    const Request& request, const std::vector<std::int32_t>& prompt, const Prompts& prompts
);

}  // namespace saker::engine

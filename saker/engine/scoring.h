// SPDX-License-Identifier: Apache-2.0
#pragma once

// Score requests as batches of the scorer: encoding, windows over sequences that are longer than
// the model's context, and an outcome for each request. Threading: any thread but the engine's.

#include "saker/engine/prompts.h"
#include "saker/engine/request.h"
#include "saker/engine/runner.h"
#include "saker/engine/score_instruments.h"

#include <span>
#include <vector>

namespace saker::engine {

// `instruments`: null, or what knows results of earlier calls and counts this one.
std::vector<ScoreOutcome> score_requests(
    Runner& runner,
    const Prompts& prompts,
    int prefill_step,
    std::span<const ScoreRequest> requests,
    ScoreInstruments* instruments = nullptr
);

}  // namespace saker::engine

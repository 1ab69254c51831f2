// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs score requests as batches of the scorer: encoding, windows over sequences longer than the
// model's context, and one outcome per request. Threading: any thread but the engine's.

#include "saker/engine/prompts.h"
#include "saker/engine/request.h"
#include "saker/engine/runner.h"
#include "saker/engine/score_instruments.h"

#include <span>
#include <vector>

namespace saker::engine {

// `instruments`: null, or a cache of earlier results, which also counts this call.
std::vector<ScoreOutcome> score_requests(
    Runner& runner,
    const Prompts& prompts,
    int prefill_step,
    std::span<const ScoreRequest> requests,
    ScoreInstruments* instruments = nullptr
);

}  // namespace saker::engine

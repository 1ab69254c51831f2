// SPDX-License-Identifier: Apache-2.0
#pragma once

// Results as JSON objects that scripts rely on (docs/cli.md): lines of the program, and results of
// the C interface. Non-finite numbers become null. Pure functions.

#include "saker/base/json/json.h"
#include "saker/engine/measures/differences.h"
#include "saker/engine/request.h"

namespace saker::engine {

// `with_logprobs`: the request asked for logprobs.
Json to_json(const GenerateResult& result, bool with_logprobs);
Json to_json(const ScoreResult& result);
Json to_json(const Differences& differences);

}  // namespace saker::engine

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Results as JSON objects that scripts rely on (docs/cli.md). Non-finite numbers become null.

#include "saker/base/json/json.h"
#include "saker/engine/measures/differences.h"
#include "saker/engine/request.h"

namespace saker::cli {

// `with_logprobs`: the request asked for logprobs.
Json to_json(const engine::GenerateResult& result, bool with_logprobs);
Json to_json(const engine::ScoreResult& result);
Json to_json(const engine::Differences& differences);
// {"min", "median", "max"} of at least one value.
Json spread_json(std::vector<double> values);

// One line of output, whatever bytes the texts hold.
std::string dump_line(const Json& json);

}  // namespace saker::cli

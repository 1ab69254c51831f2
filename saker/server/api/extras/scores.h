// SPDX-License-Identifier: Apache-2.0
#pragma once

// POST /v1/score: log-probabilities of given texts, in the base and in its adapters.

#include "saker/base/json/json.h"
#include "saker/server/turns/served_model.h"

namespace saker::server::extras {

// The body: {"prompt", "completion"} or {"text"} or {"tokens"}, or {"records": [those, ...]}, and
// "views": names of the model's adapters, or "base". Throws a 400.
Json score(const Json& body, const ServedModel& model);

}  // namespace saker::server::extras

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Requests to score as JSON records. Pure functions.

#include "saker/base/json/json.h"
#include "saker/engine/request.h"

namespace saker::engine {

// Builds a record's request over these options. Throws kInvalidArgument for unknown members and
// wrong types.
ScoreRequest make_score_request(const Json& record, const ScoreRequest& options);

}  // namespace saker::engine

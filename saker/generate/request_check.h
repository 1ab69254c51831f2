// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saker/generate/sequence.h"
#include "saker/models/model.h"

namespace saker::generate {

// Throws kInvalidArgument, naming what was got and what expected, for a request that this model
// can't run. The options of sampling and drafting are checked by what they are for.
void check_request(const SequenceRequest& request, const models::ModelInfo& model);

}  // namespace saker::generate

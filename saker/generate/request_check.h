// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saker/generate/sequence.h"
#include "saker/models/model.h"

namespace saker::generate {

// Throws kInvalidArgument, naming the value and the expected one, for a request that this model
// can't run. The sampler and the drafters check their own options.
void check_request(const SequenceRequest& request, const models::ModelInfo& model);

}  // namespace saker::generate

// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many draft tokens a sequence can take, and which of them.

#include "saker/generate/running_sequence.h"
#include "saker/models/model.h"

#include <cstdint>
#include <vector>

namespace saker::generate {

// Most draft tokens of a round: max_tokens and the model's context leave room for them and for the
// token after them.
int max_draft_tokens(const RunningSequence& sequence, const models::ModelInfo& model);

// Cuts draft tokens that cannot become part of the answer.
void shorten_draft(
    std::vector<std::int32_t>& tokens,
    const SequenceRequest& request,
    const models::ModelInfo& model
);

}  // namespace saker::generate

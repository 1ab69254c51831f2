// SPDX-License-Identifier: Apache-2.0
#pragma once

// The drafts of requests: who drafts, and the drafters of a loaded draft.

#include "saker/engine/request.h"
#include "saker/generate/sequence.h"
#include "saker/generate/speculator.h"
#include "saker/load/draft.h"
#include "saker/models/model.h"

namespace saker::engine {

// How a request drafts; the method kDefault is the one of the loaded draft.
generate::Speculation speculation_of(const Drafting& drafting, const load::LoadedDraft& draft);

// REQUIRES: draft and model outlive the drafters.
generate::Drafters make_drafters(
    const load::LoadedDraft& draft, const models::Model& model, int prefill_step
);

}  // namespace saker::engine

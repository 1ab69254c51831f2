// SPDX-License-Identifier: Apache-2.0
#pragma once

// Scores documents by a query. Threading: any thread but the engine's.

#include "saker/engine/embedding.h"
#include "saker/engine/prompts.h"
#include "saker/engine/runner.h"

namespace saker::engine {

// Scores by the model's classifier, else by the probability of "yes" against "no" as the next
// token. Throws kUnsupported for a model that has neither; kInvalidArgument, naming the document,
// for one that cannot run.
RerankResult rerank_documents(
    Runner& runner, const Prompts& prompts, int prefill_step, const RerankRequest& request
);

}  // namespace saker::engine

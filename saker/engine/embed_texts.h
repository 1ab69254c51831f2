// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs requests for vectors of texts: prompts, encoding, end tokens, limits. Threading: any thread
// but the engine's.

#include "saker/engine/embedding.h"
#include "saker/engine/prompts.h"
#include "saker/engine/runner.h"

namespace saker::engine {

// Throws kInvalidArgument, naming the input, for one that cannot run; kUnsupported for models that
// cannot embed texts.
EmbedResult embed_texts(
    Runner& runner, const Prompts& prompts, int prefill_step, const EmbedRequest& request
);

}  // namespace saker::engine

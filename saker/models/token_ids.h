// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of a caller's token ids, and of what it asks of the model.

#include "saker/models/model.h"

#include <cstdint>
#include <span>

namespace saker::models {

// Throws kInvalidArgument naming the first id that the model lacks.
void check_token_ids(const ModelInfo& info, std::span<const std::int32_t> ids);

// Throws kUnsupported for a model that only embeds texts: it has no head, or is bidirectional.
void check_predicts_tokens(const ModelInfo& info);

}  // namespace saker::models

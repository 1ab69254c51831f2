// SPDX-License-Identifier: Apache-2.0
#pragma once

// Token ids that a caller hands to a model.

#include "saker/models/model.h"

#include <cstdint>
#include <span>

namespace saker::models {

// Throws kInvalidArgument naming the first id that is not one of the model's.
void check_token_ids(const ModelInfo& info, std::span<const std::int32_t> ids);

}  // namespace saker::models

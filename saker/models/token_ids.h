// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of a caller's token ids.

#include "saker/models/model.h"

#include <cstdint>
#include <span>

namespace saker::models {

// Throws kInvalidArgument naming the first id that the model lacks.
void check_token_ids(const ModelInfo& info, std::span<const std::int32_t> ids);

}  // namespace saker::models

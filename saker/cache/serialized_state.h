// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state of a recurrent layer in its serialized form, mlx-lm's ArraysCache: each array [1, ...],
// those of three axes with the last two exchanged. It does not say after how many rows it is.

#include "saker/cache/recurrent.h"
#include "saker/cache/serialized.h"

#include <cstdint>

namespace saker::cache {

SerializedCache serialize_state(const RecurrentCache& layer);

// Throws kInvalidArgument for another kind or other shapes, kCorruptData as `check_serialized` and
// where state and offset contradict each other; then the layer is as before.
void restore_state(RecurrentCache& layer, const SerializedCache& serialized, std::int64_t offset);

}  // namespace saker::cache

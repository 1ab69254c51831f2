// SPDX-License-Identifier: Apache-2.0
#pragma once

// A recurrent layer's state in its serialized form, mlx-lm's ArraysCache. Each array is [1, ...];
// arrays of three axes have the last two exchanged. The form does not store the offset.

#include "saker/cache/recurrent.h"
#include "saker/cache/serialized.h"

#include <cstdint>

namespace saker::cache {

SerializedCache serialize_state(const RecurrentCache& layer);

// Throws kInvalidArgument for another kind or other shapes, kCorruptData as `check_serialized` and
// if state and offset contradict each other; then the layer is as before.
void restore_state(RecurrentCache& layer, const SerializedCache& serialized, std::int64_t offset);

}  // namespace saker::cache

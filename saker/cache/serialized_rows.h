// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts the caches that models run on to their serialized form and back. Files have the dtype of
// the cache's rows: bf16, or float32 for float32 checkpoints. Restoring converts rows of other
// float dtypes (to bf16: nearest, ties to even). Threading: as LayerCache.

#include "saker/cache/layer_cache.h"
#include "saker/cache/sequence_cache.h"
#include "saker/cache/serialized.h"

#include <vector>

namespace saker::cache {

// The committed rows, oldest first. Throws kUnsupported for caches without a serialized form.
SerializedCache serialize(const LayerCache& layer);
std::vector<SerializedCache> serialize(const SequenceCache& cache);

// Fills `layer` with another cache's content. A full cache's rows also fit a sliding layer, and
// rows of 16 bits fit a quantized one. Codes need a layer with the same bits and groups. Throws
// kInvalidArgument if kind, bounds, heads or dimensions differ, kCorruptData as `check_serialized`;
// then the layer is as before. REQUIRES: a layer that keeps rows.
void restore(LayerCache& layer, const SerializedCache& serialized);
// Restores all layers of `empty`. Throws an error that names the layer.
SequenceCache restored(SequenceCache empty, const std::vector<SerializedCache>& layers);

}  // namespace saker::cache

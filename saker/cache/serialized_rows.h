// SPDX-License-Identifier: Apache-2.0
#pragma once

// Between the caches that models run on and their serialized form. Files hold the dtype of the
// cache's rows: bf16, float32 for float32 checkpoints; rows of another float dtype are converted
// when they are restored (to bf16: nearest, ties to even). Threading: as LayerCache.

#include "saker/base/tensor.h"
#include "saker/cache/layer_cache.h"
#include "saker/cache/sequence_cache.h"
#include "saker/cache/serialized.h"
#include "saker/kernels/mx.h"

#include <vector>

namespace saker::cache {

// A copy. Throws kUnsupported for float64, which MLX's devices lack.
mx::array to_array(const Tensor& tensor);
// Shares the array's memory.
Tensor to_tensor(const mx::array& array);

// The committed rows, oldest first. Throws kUnsupported for what has no serialized form.
SerializedCache serialize(const LayerCache& layer);
std::vector<SerializedCache> serialize(const SequenceCache& cache);

// Fills `layer` with what another cache kept. A full cache's rows also serve a sliding layer, rows
// of 16 bits a quantized one; codes need a layer of the same bits and groups.
// Throws kInvalidArgument when kind, bounds, heads or dimensions differ, kCorruptData as
// `check_serialized`; then the layer is as before. REQUIRES: a layer that keeps rows.
void restore(LayerCache& layer, const SerializedCache& serialized);
// All layers of `empty`, or an error that names the layer.
SequenceCache restored(SequenceCache empty, const std::vector<SerializedCache>& layers);

}  // namespace saker::cache

// SPDX-License-Identifier: Apache-2.0
#pragma once

// A decoder-only language model out of its parts: token table, stack of layers, head. An
// architecture gives its configuration and how one layer is built.

#include "saker/cache/layer_cache.h"
#include "saker/cache/sequence_cache.h"
#include "saker/kernels/packed_weight.h"
#include "saker/models/decoder_config.h"
#include "saker/models/model.h"
#include "saker/nn/decoder_stack.h"
#include "saker/nn/embedding.h"
#include "saker/nn/rope.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace saker::models {

// What a layer is built from.
struct LayerParts {
  nn::Weights weights;  // Scope of the layer.
  const DecoderConfig& config;
  int index = 0;
  std::shared_ptr<const nn::Rope> rope;
};

// The scope of the decoder's tensors, whose head may lie outside.
std::optional<nn::Weights> find_body_scope(const nn::Weights& weights);
// The same; throws kCorruptData without one.
nn::Weights body_scope(const nn::Weights& weights);

using LayerBuilder = nn::DecoderLayer (*)(const LayerParts& parts);

// The usual layer: norm, attention or linear attention, norm, MLP or experts.
nn::DecoderLayer pre_norm_layer(const LayerParts& parts);
// Gemma's later layers: the outputs of attention and MLP have a norm of their own.
nn::DecoderLayer sandwich_norm_layer(const LayerParts& parts);

// A layer's empty cache. REQUIRES: options.max_kv_size >= 0.
std::unique_ptr<cache::LayerCache> make_layer_cache(
    const DecoderConfig& config,
    const LayerConfig& layer,
    const CacheOptions& options,
    mx::Dtype dtype
);

// Empty caches of these layers. Rows, before they become codes, are float32 where `weight` is and
// else bf16. REQUIRES: options.max_kv_size >= 0.
cache::SequenceCache make_layer_caches(
    const DecoderConfig& config,
    std::span<const LayerConfig> layers,
    const CacheOptions& options,
    const kernels::PackedWeight& weight
);

std::unique_ptr<const Model> make_decoder(
    const DecoderConfig& config,
    const nn::Weights& weights,
    LayerBuilder build_layer,
    const LoadProgress& progress
);

}  // namespace saker::models

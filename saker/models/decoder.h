// SPDX-License-Identifier: Apache-2.0
#pragma once

// A decoder-only language model made of its parts: token table, stack of layers, head. An
// architecture defines its configuration and how one layer is built.

#include "saker/cache/layer_cache.h"
#include "saker/cache/sequence_cache.h"
#include "saker/kernels/storage/packed_weight.h"
#include "saker/models/decoder_config.h"
#include "saker/models/model.h"
#include "saker/nn/embedding.h"
#include "saker/nn/rope.h"
#include "saker/nn/stack/decoder_stack.h"

#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace saker::models {

// Input for building one layer.
struct LayerParts {
  nn::Weights weights;  // Scope of the layer.
  const DecoderConfig& config;
  int index = 0;
  std::shared_ptr<const nn::Rope> rope;
};

// The scope of the decoder's tensors; the head may lie outside. None if there is no decoder.
std::optional<nn::Weights> find_body_scope(const nn::Weights& weights);
// As find_body_scope; throws kCorruptData if there is none.
nn::Weights body_scope(const nn::Weights& weights);

using LayerBuilder = nn::DecoderLayer (*)(const LayerParts& parts);

// The usual layer: norm, what mixes tokens, norm, MLP or experts; or one of the two.
nn::DecoderLayer pre_norm_layer(const LayerParts& parts);
// The layer of later Gemmas: attention and MLP also have a norm on their output.
nn::DecoderLayer sandwich_norm_layer(const LayerParts& parts);
// Attention and MLP read the stream, and have a norm on their output only.
nn::DecoderLayer post_norm_layer(const LayerParts& parts);
// Attention and MLP read the same normed rows.
nn::DecoderLayer parallel_layer(const LayerParts& parts);

// The names of the norms on the residual stream in layers that such a builder makes; they live as
// long as `config`. Builders of their own are taken for sandwich_norm_layer.
std::vector<std::string_view> stream_norms(const DecoderConfig& config, LayerBuilder builder);

// A layer's empty cache. REQUIRES: options.max_kv_size >= 0.
std::unique_ptr<cache::LayerCache> make_layer_cache(
    const DecoderConfig& config,
    const LayerConfig& layer,
    const CacheOptions& options,
    mx::Dtype dtype
);

// Empty caches for these layers. Unquantized rows are float32 if `weight` is, else bf16. REQUIRES:
// options.max_kv_size >= 0.
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

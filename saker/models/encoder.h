// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model that turns the tokens of a text into hidden states, for vectors and scores: all tokens
// see each other, and none is predicted. It keeps nothing between passes: a sequence's only cache
// is memory for the keys and values of a layer, which the next layer overwrites.

#include "saker/models/encoder_config.h"
#include "saker/models/model.h"

#include <memory>

namespace saker::models {

// Throws kCorruptData for missing tensors and those of another shape.
std::unique_ptr<const Model> make_encoder(
    const EncoderConfig& config, const nn::Weights& weights, const LoadProgress& progress
);

}  // namespace saker::models

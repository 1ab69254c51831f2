// SPDX-License-Identifier: Apache-2.0
#pragma once

// Questions about the base's weights, read back row by row.

#include "saker/adapters/adapter_source.h"
#include "saker/nn/weights.h"

#include <string>
#include <vector>

namespace saker::adapters {

// Per output: magnitude / |w + scale * up down|, the factor of weight-decomposed adapters
// (https://arxiv.org/abs/2402.09353). Throws kInvalidArgument when shapes differ and kCorruptData
// when a norm is 0. `name` is the module's in messages.
std::vector<float> magnitude_ratios(
    const nn::Module& module, const LowRank& low_rank, const std::string& name
);

// Whether `weight` holds the module's own values. Throws kInvalidArgument for another shape and
// kCorruptData for values that are no finite floats.
bool equals_base(const nn::Module& module, const Tensor& weight, const std::string& name);

bool shares_weight(const nn::Module& one, const nn::Module& other);

}  // namespace saker::adapters

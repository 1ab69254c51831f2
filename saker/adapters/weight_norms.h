// SPDX-License-Identifier: Apache-2.0
#pragma once

// Norms and comparisons of the base's weights, which are read back row by row.

#include "saker/adapters/adapter_source.h"
#include "saker/nn/weights/weights.h"

#include <string>
#include <vector>

namespace saker::adapters {

// The factors of weight-decomposed adapters (https://arxiv.org/abs/2402.09353): per output
// magnitude / |w + scale * up down|. For an embedding they are per token or per column, see
// LowRank. Throws kInvalidArgument if shapes differ and kCorruptData if a norm is 0. `name` is the
// module's in messages.
std::vector<float> magnitude_ratios(
    const nn::Module& module, const LowRank& low_rank, const std::string& name
);

// The factors that turn the base's norm weight into `weight`. Throws kUnsupported if the base's
// value is 0 and the new one is not: no factor can change an output of 0.
std::vector<float> norm_gains(
    const nn::Module& module, const Tensor& weight, const std::string& name
);

// True if `weight` holds the module's own values. Throws kInvalidArgument for another shape and
// kCorruptData for values that are not finite floats.
bool equals_base(const nn::Module& module, const Tensor& weight, const std::string& name);

bool shares_weight(const nn::Module& one, const nn::Module& other);

}  // namespace saker::adapters

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Questions about the base's weights, read back row by row.

#include "saker/adapters/adapter_source.h"
#include "saker/nn/weights.h"

#include <string>
#include <vector>

namespace saker::adapters {

// Per output: magnitude / |w + scale * up down|, the factor of weight-decomposed adapters
// (https://arxiv.org/abs/2402.09353); of an embedding per token or per column, see LowRank. Throws
// kInvalidArgument when shapes differ and kCorruptData when a norm is 0. `name` is the module's in
// messages.
std::vector<float> magnitude_ratios(
    const nn::Module& module, const LowRank& low_rank, const std::string& name
);

// The factors that a norm's weight of these values means, beside those of the base. Throws
// kUnsupported where the base's is 0 and the other is not: an output of 0 can't be changed by a
// factor.
std::vector<float> norm_gains(
    const nn::Module& module, const Tensor& weight, const std::string& name
);

// Whether `weight` holds the module's own values. Throws kInvalidArgument for another shape and
// kCorruptData for values that are no finite floats.
bool equals_base(const nn::Module& module, const Tensor& weight, const std::string& name);

bool shares_weight(const nn::Module& one, const nn::Module& other);

}  // namespace saker::adapters

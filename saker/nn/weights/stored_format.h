// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds a quantized weight's format from its own tensors, by mlx-lm's rules: bits and groups from
// the shapes, mode from the dtype of the scales. Loading and rewriting a model both use this, so
// they agree where the configuration is silent or incomplete.

#include "saker/base/tensor.h"
#include "saker/kernels/layout/weight_format.h"

#include <string>

namespace saker::nn {

// `columns`: the layer's inputs; `path`: the weight's name, for messages. Stacks have one dimension
// more. Throws kCorruptData for tensors that don't quantize this many columns, kUnsupported for an
// unknown mode.
kernels::WeightFormat stored_format(
    const Tensor& weight, const Tensor& scales, int columns, const std::string& path
);

}  // namespace saker::nn

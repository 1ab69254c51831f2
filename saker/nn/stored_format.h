// SPDX-License-Identifier: Apache-2.0
#pragma once

// The format of a quantized weight, from its own tensors: widths and groups follow from the shapes,
// the mode from the dtype of the scales, as mlx-lm tells them. What loads a model and what rewrites
// one both ask here, so that they agree where the configuration says nothing or less than all.

#include "saker/base/tensor.h"
#include "saker/kernels/weight_format.h"

#include <string>

namespace saker::nn {

// `columns`: inputs of the layer; `path`: of its weight, for messages. Stacks have a dimension
// more. Throws kCorruptData for tensors that don't quantize so many columns, kUnsupported for a
// mode that we don't know.
kernels::WeightFormat stored_format(
    const Tensor& weight, const Tensor& scales, int columns, const std::string& path
);

}  // namespace saker::nn

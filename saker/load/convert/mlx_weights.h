// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tensors of a checkpoint as mlx-lm's model has them: under its names, without what it does not
// use, experts stacked, norms and kernels as MLX's models hold them (mlx_lm/models/*.py, `sanitize`
// and `cast_predicate`). Bytes are not touched: who writes a tensor does the rest.

#include "saker/base/json.h"
#include "saker/load/safetensors.h"

#include <cstdint>
#include <string>
#include <vector>

namespace saker::load {

struct ModelTensor {
  std::string name;
  // One, or those that are stacked along a new first axis; of one dtype and shape.
  std::vector<Tensor> parts;
  bool stacked = false;
  // Added to every value, in the tensor's own dtype.
  float offset = 0.0F;
  // Stays in its own dtype whatever the others become.
  bool keeps_dtype = false;

  DType dtype() const { return parts.front().dtype; }

  std::vector<std::int64_t> shape() const;
};

// Sorted by name. `config`: with a `model_type` that is known, see models/detect.h, or of a draft.
// Throws kCorruptData for experts that don't fit together.
std::vector<ModelTensor> mlx_weights(const TensorMap& tensors, const Json& config);

}  // namespace saker::load

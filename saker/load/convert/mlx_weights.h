// SPDX-License-Identifier: Apache-2.0
#pragma once

// The tensors of a checkpoint as mlx-lm's model has them (mlx_lm/models/*.py, `sanitize` and
// `cast_predicate`). They have mlx-lm's names, without unused ones; experts are stacked, norms and
// kernels are in MLX's form. Bytes are not touched: the code that writes a tensor transforms them.

#include "saker/base/json/json.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/importers/placeholder_tensors.h"
#include "saker/models/tensor_rules.h"

#include <cstdint>
#include <string>
#include <vector>

namespace saker::load {

struct ModelTensor {
  std::string name;
  // One tensor, or several of one dtype and shape that are stacked along a new first axis.
  std::vector<Tensor> parts;
  bool stacked = false;
  // A value that is added to every element, in the tensor's own dtype.
  float offset = 0.0F;
  // Rows are multiplied by these before.
  models::RowFactors row_factors = {};
  // The parts' bytes are those of their transposes.
  bool turned = false;
  // True: keeps its dtype, whatever the others become.
  bool keeps_dtype = false;

  DType dtype() const { return parts.front().dtype; }

  std::vector<std::int64_t> shape() const;
};

// Sorted by name. REQUIRES: `config` has a known `model_type` (see models/detect.h), or is a
// draft's. Throws kCorruptData for experts that don't fit together.
// `made` knows lazy tensors, which stay whole; null: there are none.
std::vector<ModelTensor> mlx_weights(
    const TensorMap& tensors,
    const Json& config,
    const importers::PlaceholderTensors* made = nullptr
);

}  // namespace saker::load

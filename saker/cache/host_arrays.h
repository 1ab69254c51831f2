// SPDX-License-Identifier: Apache-2.0
#pragma once

// MLX arrays as tensors of the host, and back. Threading: MLX's rules.

#include "saker/base/tensor.h"
#include "saker/kernels/mx.h"

namespace saker::cache {

// Copies. Throws kUnsupported for float64, which MLX's devices lack.
mx::array to_array(const Tensor& tensor);
// Evaluates the array and shares its memory. Throws kUnsupported for a dtype that files lack.
Tensor to_tensor(const mx::array& array);

}  // namespace saker::cache

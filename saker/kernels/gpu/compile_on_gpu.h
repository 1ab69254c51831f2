// SPDX-License-Identifier: Apache-2.0
#pragma once

// Elementwise operations as one kernel, on devices where each kernel costs a launch.

#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/mx.h"

#include <vector>

namespace saker::kernels {

using Operations = std::vector<mx::array> (*)(const std::vector<mx::array>& inputs);

// Runs `operations` on these inputs. On a GPU MLX compiles them, once per kind of inputs. On CPU
// they run uncompiled, since MLX would call a C++ compiler. REQUIRES: `operations` depends on its
// inputs only.
inline std::vector<mx::array> compile_on_gpu(
    Operations operations, const std::vector<mx::array>& inputs
) {
  return mlx_device() == mx::Device::gpu ? mx::compile(operations)(inputs) : operations(inputs);
}

}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Elementwise operations as one kernel where each kernel costs a launch.

#include "saker/kernels/mx.h"

#include <vector>

namespace saker::kernels {

using Operations = std::vector<mx::array> (*)(const std::vector<mx::array>& inputs);

// `operations` of these inputs: on a GPU compiled by MLX, once per kind of inputs; on CPU as they
// are, since MLX would call a C++ compiler. REQUIRES: `operations` depends on its inputs only.
inline std::vector<mx::array> compile_on_gpu(
    Operations operations, const std::vector<mx::array>& inputs
) {
  return mx::default_device() == mx::Device::gpu ? mx::compile(operations)(inputs)
                                                 : operations(inputs);
}

}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names MLX's namespace, in this one place. Folders that call MLX include this header.

#include "mlx/mlx.h"

namespace saker {

namespace mx = mlx::core;

}  // namespace saker

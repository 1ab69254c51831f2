// SPDX-License-Identifier: Apache-2.0
#pragma once

// The one place that names MLX's namespace. All our MLX calls go through folders that include this
// header.

#include "mlx/mlx.h"

namespace saker {

namespace mx = mlx::core;

}  // namespace saker

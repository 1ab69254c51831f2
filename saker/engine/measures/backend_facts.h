// SPDX-License-Identifier: Apache-2.0
#pragma once

// MLX and its devices, which run the arrays. For reports; loads no model.

#include <string>

namespace saker::engine {

struct BackendFacts {
  std::string mlx_version;
  std::string gpu;  // Its name; empty: this build of MLX has none, or the machine.
};

BackendFacts backend_facts();

}  // namespace saker::engine

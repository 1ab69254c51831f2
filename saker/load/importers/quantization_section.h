// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a configuration says of modules that were given codes of MLX's formats.

#include "saker/base/json.h"
#include "saker/kernels/weight_format.h"

#include <map>
#include <set>
#include <string>

namespace saker::load::importers {

// `quantization` and its copy `quantization_config`, as mlx-lm writes them: the format of most
// modules for all, and the others by path, as well as those of `named`, so that they are not
// inferred from shapes. Nothing for no modules.
void add_quantization(
    Json& config,
    const std::map<std::string, kernels::WeightFormat>& formats,
    const std::set<std::string>& named = {}
);

}  // namespace saker::load::importers

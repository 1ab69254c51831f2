// SPDX-License-Identifier: Apache-2.0
#pragma once

// Describes modules with codes of MLX's formats in a configuration.

#include "saker/base/json/json.h"
#include "saker/kernels/layout/weight_format.h"

#include <map>
#include <set>
#include <string>

namespace saker::load::importers {

// Adds `quantization` and its copy `quantization_config`, as mlx-lm writes them. The most frequent
// format is the default. Other modules, and those of `named`, are listed by path, so that their
// formats are not inferred from shapes. Adds nothing if there are no modules.
void add_quantization(
    Json& config,
    const std::map<std::string, kernels::WeightFormat>& formats,
    const std::set<std::string>& named = {}
);

}  // namespace saker::load::importers

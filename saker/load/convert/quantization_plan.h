// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which modules of a model are quantized, and how: what was asked for, the recipes of mlx-lm
// (mlx_lm/convert.py) and what its models want for themselves, in the form of `config.json`.

#include "saker/base/json.h"
#include "saker/kernels/weight_format.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

// For the modules whose whole path the pattern matches, as a shell matches names: '*', '?', "[ab]".
struct QuantizeRule {
  std::string pattern;
  std::optional<kernels::WeightFormat> format;  // None: stays as it is.
};

struct QuantizeOptions {
  kernels::WeightFormat format;     // Of what nothing else speaks for.
  std::string recipe;               // "", "mixed_2_6", "mixed_3_4", "mixed_3_6" or "mixed_4_6".
  std::vector<QuantizeRule> rules;  // Before the recipe; the first one that matches counts.
};

// How people say it: 0 and empty where nothing is said.
struct QuantizeChoice {
  int bits = 0;
  int group_size = 0;
  std::string mode = {};
  std::string recipe = {};
  std::vector<std::string> rules = {};  // As parse_rule reads them.
};

// A linear layer, an embedding or a stack of layers.
struct WeightShape {
  std::string path;          // Of the module: "model.layers.0.mlp.up_proj".
  std::int64_t columns = 0;  // Inputs.
};

struct QuantizationPlan {
  std::map<std::string, kernels::WeightFormat, std::less<>> formats;  // By path.
  Json section;  // `quantization` of the configuration, as mlx-lm writes it.
};

// "affine", "mxfp4", "nvfp4", "mxfp8" with bits and group size; 0: the mode's default. Throws
// kInvalidArgument for what is no format of MLX.
kernels::WeightFormat quantized_format(std::string_view mode, int bits, int group_size);
std::string_view mode_name(kernels::WeightKind kind);

// "PATTERN=BITS[:GROUP[:MODE]]" or "PATTERN=float". Throws kInvalidArgument for anything else.
QuantizeRule parse_rule(std::string_view text);

// None where nothing is said; "affine" where the mode is not. Throws as quantized_format and
// parse_rule do.
std::optional<QuantizeOptions> quantize_options(const QuantizeChoice& choice);

// Modules whose columns are no multiple of the group size stay as they are, unless a rule asked
// for them: that throws kInvalidArgument, as do unknown recipes, recipes with another mode than
// affine or a model that has no `down_proj`, and rules that match nothing.
QuantizationPlan plan_quantization(
    const QuantizeOptions& options, const Json& config, const std::vector<WeightShape>& modules
);

}  // namespace saker::load

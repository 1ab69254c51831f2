// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decides which modules of a model are quantized, and how, in the form of `config.json`. Inputs are
// the user's choices, the recipes of mlx-lm (mlx_lm/convert.py) and the needs of its models.

#include "saker/base/json/json.h"
#include "saker/kernels/layout/weight_format.h"
#include "saker/load/files/quantization_mode.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

// A rule for all modules whose whole path matches the pattern. Wildcards are a shell's: '*', '?',
// "[ab]".
struct QuantizeRule {
  std::string pattern;
  std::optional<kernels::WeightFormat> format;  // Empty: not quantized.
};

struct QuantizeOptions {
  kernels::WeightFormat format;     // The format where no rule or recipe decides.
  std::string recipe;               // "", "mixed_2_6", "mixed_3_4", "mixed_3_6" or "mixed_4_6".
  std::vector<QuantizeRule> rules;  // Precede the recipe; the first match counts.
};

// A user's choices: 0 and empty for unset ones.
struct QuantizeChoice {
  int bits = 0;
  int group_size = 0;
  std::string mode = {};
  std::string recipe = {};
  std::vector<std::string> rules = {};  // Texts for parse_rule.
};

// A linear layer, an embedding or a stack of layers.
struct WeightShape {
  std::string path;          // The module's: "model.layers.0.mlp.up_proj".
  std::int64_t columns = 0;  // Inputs.
};

struct QuantizationPlan {
  std::map<std::string, kernels::WeightFormat, std::less<>> formats;  // By path.
  Json section;  // The configuration's `quantization`, as mlx-lm writes it.
};

// Parses "PATTERN=BITS[:GROUP[:MODE]]" or "PATTERN=float". Throws kInvalidArgument for anything
// else.
QuantizeRule parse_rule(std::string_view text);

// Empty if nothing is set; the mode defaults to "affine". Throws as quantized_format and parse_rule
// do.
std::optional<QuantizeOptions> quantize_options(const QuantizeChoice& choice);

// Modules whose columns are no multiple of the group size are not quantized. Throws
// kInvalidArgument if a rule asked for such a module, and for rules that match nothing. Recipes
// throw it too, if they are unknown, have another mode than affine, or meet a model without
// `down_proj`.
QuantizationPlan plan_quantization(
    const QuantizeOptions& options, const Json& config, const std::vector<WeightShape>& modules
);

}  // namespace saker::load

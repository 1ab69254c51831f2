// SPDX-License-Identifier: Apache-2.0
#include "saker/load/convert/quantization_plan.h"

#include "saker/base/error.h"
#include "saker/base/json/json_members.h"
#include "saker/base/utf8.h"
#include "saker/models/tensor_rules.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace saker::load {
namespace {

using kernels::WeightFormat;
using kernels::WeightKind;

struct Recipe {
  std::string_view name;
  int low_bits;
  int high_bits;
};

constexpr std::array<Recipe, 4> kRecipes = {{
    {"mixed_2_6", 2, 6},
    {"mixed_3_4", 3, 4},
    {"mixed_3_6", 3, 6},
    {"mixed_4_6", 4, 6},
}};

// How one module is quantized. `entry` is its own entry in the configuration; null: none.
struct Choice {
  WeightFormat format;
  Json entry;
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Json format_json(const WeightFormat& format) {
  return {
      {"group_size", format.group_size},
      {"bits", format.bits},
      {"mode", mode_name(format.kind)},
  };
}

// The first number in a path; -1 without one.
int layer_of(std::string_view path) {
  while (!path.empty()) {
    const auto dot = path.find('.');
    const auto part = path.substr(0, dot);
    int number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error == std::errc() && end == part.data() + part.size()) {
      return number;
    }
    path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  }
  return -1;
}

const Recipe& find_recipe(const QuantizeOptions& options, const std::vector<WeightShape>& modules) {
  const auto* found = std::find_if(kRecipes.begin(), kRecipes.end(), [&](const Recipe& recipe) {
    return recipe.name == options.recipe;
  });
  require(
      found != kRecipes.end(),
      ErrorCode::kInvalidArgument,
      "recipe {} is unknown, expected mixed_2_6, mixed_3_4, mixed_3_6 or mixed_4_6",
      quote(options.recipe)
  );
  require(
      options.format.kind == WeightKind::kAffine,
      ErrorCode::kInvalidArgument,
      "recipe {} with mode {}, expected affine",
      options.recipe,
      mode_name(options.format.kind)
  );
  require(
      std::ranges::any_of(
          modules, [](const WeightShape& module) { return contains(module.path, "down_proj"); }
      ),
      ErrorCode::kInvalidArgument,
      "recipe {} needs a model with modules named down_proj",
      options.recipe
  );
  return *found;
}

// Gives more bits to the head. Values and down projections get them too, in the first and last
// eighth of the layers and in every third layer between.
WeightFormat recipe_format(
    const Recipe& recipe, const WeightFormat& format, std::string_view path, int layers
) {
  const int layer = std::max(layer_of(path), 0);
  const bool more = layer < layers / 8 || layer >= 7 * layers / 8 || (layer - layers / 8) % 3 == 2;
  const bool sensitive = contains(path, "v_proj") || contains(path, "v_a_proj") ||
                         contains(path, "v_b_proj") || contains(path, "down_proj");
  const bool high = (more && sensitive) || contains(path, "lm_head");
  return {
      .kind = format.kind,
      .bits = high ? recipe.high_bits : recipe.low_bits,
      .group_size = format.group_size,
  };
}

const QuantizeRule* find_rule(const QuantizeOptions& options, const std::string& path) {
  for (const QuantizeRule& rule : options.rules) {
    if (::fnmatch(rule.pattern.c_str(), path.c_str(), 0) == 0) {
      return &rule;
    }
  }
  return nullptr;
}

std::optional<Choice> by_rule(const QuantizeRule& rule, const WeightShape& module) {
  if (!rule.format) {
    return std::nullopt;
  }
  require(
      module.columns % rule.format->group_size == 0,
      ErrorCode::kInvalidArgument,
      "{} has {} columns, no multiple of the group size {} that rule {} asks for",
      quote(module.path),
      module.columns,
      rule.format->group_size,
      quote(rule.pattern)
  );
  return Choice{*rule.format, format_json(*rule.format)};
}

// The model's own choice. As mlx-lm writes it, its entry names no mode.
std::optional<Choice> by_model(const models::TensorRules& rules, const WeightShape& module) {
  const auto format = rules.own_format(module.path);
  if (!format || module.columns % format->group_size != 0) {
    return std::nullopt;
  }
  return Choice{*format, {{"group_size", format->group_size}, {"bits", format->bits}}};
}

void require_rules_match(const QuantizeOptions& options, const std::vector<WeightShape>& modules) {
  for (const QuantizeRule& rule : options.rules) {
    require(
        std::ranges::any_of(
            modules,
            [&](const WeightShape& module) {
              return ::fnmatch(rule.pattern.c_str(), module.path.c_str(), 0) == 0;
            }
        ),
        ErrorCode::kInvalidArgument,
        "rule {} matches none of the model's {} modules with weights",
        quote(rule.pattern),
        modules.size()
    );
  }
}

int layer_count(const std::vector<WeightShape>& modules) {
  int layers = 0;
  for (const WeightShape& module : modules) {
    layers = std::max(layers, layer_of(module.path) + 1);
  }
  return layers;
}

// Parses an unsigned number of a rule.
int rule_number(std::string_view text, std::string_view rule) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  require(
      error == std::errc() && end == text.data() + text.size() && number > 0,
      ErrorCode::kInvalidArgument,
      "rule {}: {} is no number",
      quote(rule),
      quote(text)
  );
  return number;
}

}  // namespace

QuantizeRule parse_rule(std::string_view text) {
  const auto equals = text.rfind('=');
  require(
      equals != std::string_view::npos && equals > 0,
      ErrorCode::kInvalidArgument,
      "rule {}, expected PATTERN=BITS[:GROUP[:MODE]] or PATTERN=float",
      quote(text)
  );
  QuantizeRule rule{.pattern = std::string(text.substr(0, equals)), .format = std::nullopt};
  std::string_view rest = text.substr(equals + 1);
  if (rest == "float") {
    return rule;
  }
  std::array<std::string_view, 3> fields{};
  for (std::string_view& field : fields) {
    const auto colon = std::min(rest.find(':'), rest.size());
    field = rest.substr(0, colon);
    rest = rest.substr(std::min(colon + 1, rest.size()));
  }
  require(
      rest.empty(), ErrorCode::kInvalidArgument, "rule {} has more than three fields", quote(text)
  );
  const int group_size = fields[1].empty() ? 0 : rule_number(fields[1], text);
  rule.format = quantized_format(
      fields[2].empty() ? "affine" : fields[2], rule_number(fields[0], text), group_size
  );
  return rule;
}

std::optional<QuantizeOptions> quantize_options(const QuantizeChoice& choice) {
  if (choice.bits == 0 && choice.group_size == 0 && choice.mode.empty() && choice.recipe.empty() &&
      choice.rules.empty()) {
    return std::nullopt;
  }
  QuantizeOptions options;
  options.format = quantized_format(
      choice.mode.empty() ? "affine" : choice.mode, choice.bits, choice.group_size
  );
  options.recipe = choice.recipe;
  for (const std::string& rule : choice.rules) {
    options.rules.push_back(parse_rule(rule));
  }
  return options;
}

QuantizationPlan plan_quantization(
    const QuantizeOptions& options, const Json& config, const std::vector<WeightShape>& modules
) {
  const Recipe* recipe = options.recipe.empty() ? nullptr : &find_recipe(options, modules);
  require_rules_match(options, modules);
  const models::TensorRules rules = models::tensor_rules(config);
  const int layers = layer_count(modules);
  const auto choose = [&](const WeightShape& module) -> std::optional<Choice> {
    if (const QuantizeRule* rule = find_rule(options, module.path)) {
      return by_rule(*rule, module);
    }
    if (module.columns % options.format.group_size != 0 || rules.stays_float(module.path) ||
        rules.stays_float_there(module.path, config)) {
      return std::nullopt;
    }
    if (recipe != nullptr) {
      const auto format = recipe_format(*recipe, options.format, module.path, layers);
      return Choice{format, format_json(format)};
    }
    const auto own = by_model(rules, module);
    return own ? own : Choice{options.format, nullptr};
  };
  QuantizationPlan plan;
  JsonMembers section(format_json(options.format));
  for (const WeightShape& module : modules) {
    const auto choice = choose(module);
    if (!choice) {
      continue;
    }
    plan.formats.emplace(module.path, choice->format);
    if (!choice->entry.is_null()) {
      section.set(module.path, choice->entry);
    }
  }
  plan.section = section.take();
  return plan;
}

}  // namespace saker::load

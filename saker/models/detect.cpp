// SPDX-License-Identifier: Apache-2.0
#include "saker/models/detect.h"

#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/base/utf8.h"
#include "saker/models/model.h"
#include "saker/models/token_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::models {
namespace {

using Names = std::vector<std::string_view>;

// The modules of a family's checkpoints.
struct Layout {
  Names all;           // Every layer has these.
  Names some = {};     // A layer may have these.
  Names tensors = {};  // Optional tensors of a layer that belong to no module.
  Names parts = {};    // Scopes beside the layers that a checkpoint may have.
};

struct Family {
  std::string_view prefix;
  std::string_view model_type;
  Layout layout;
  bool nested = false;  // May be the `language_model` of a larger checkpoint.
};

Names joined(Names names, const Names& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

const Names& mlp_modules() {
  static const Names names{
      "input_layernorm", "post_attention_layernorm", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"
  };
  return names;
}

const Names& attention_modules() {
  static const Names names{
      "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"
  };
  return names;
}

Layout llama_layout() {
  return {.all = joined(mlp_modules(), attention_modules())};
}

const Names& head_norms() {
  static const Names names{"self_attn.q_norm", "self_attn.k_norm"};
  return names;
}

Layout hybrid_layout() {
  const Names delta{
      "linear_attn.in_proj_qkv",
      "linear_attn.in_proj_z",
      "linear_attn.in_proj_a",
      "linear_attn.in_proj_b",
      "linear_attn.out_proj",
      "linear_attn.conv1d",
      "linear_attn.norm",
  };
  return {
      .all = mlp_modules(),
      .some = joined(joined(attention_modules(), head_norms()), delta),
      .tensors = {"linear_attn.A_log", "linear_attn.dt_bias"},
      .parts = {"mtp"},
  };
}

Family qwen3_5_family(std::string_view prefix) {
  return {.prefix = prefix, .model_type = "qwen3_5", .layout = hybrid_layout(), .nested = true};
}

// A longer prefix comes before one that it extends.
std::vector<Family> families() {
  const Names sandwich{"pre_feedforward_layernorm", "post_feedforward_layernorm"};
  const Layout llama = llama_layout();
  const Layout qwen3{.all = joined(llama.all, head_norms())};
  const Layout gemma2{.all = joined(llama.all, sandwich)};
  const Layout gemma3{.all = joined(gemma2.all, head_norms())};
  return {
      qwen3_5_family("qwen3_5"),
      qwen3_5_family("qwen3.5"),
      {"qwen3", "qwen3", qwen3},
      {"qwen2", "qwen2", llama},
      {"llama", "llama", llama},
      {"mistral", "mistral", llama},
      {"gemma3", "gemma3_text", gemma3, true},
      {"gemma2", "gemma2", gemma2},
      {"gemma", "gemma", llama},
  };
}

// Other designs that extend a family's name. Or they compute something else from a llama's tensors,
// without a configuration field that says so.
constexpr std::array<std::string_view, 11> kOthers{
    "qwen3_next",
    "qwen3_moe",
    "qwen3_vl",
    "qwen2_moe",
    "llama4",
    "mistral3",
    "ministral3",
    "gemma3n",
    "helium",
    "ernie4_5",
    "smollm3",
};

bool is_one_of_the_others(std::string_view model_type) {
  return std::ranges::any_of(kOthers, [&](std::string_view other) {
    return model_type.starts_with(other);
  });
}

// "qwen3_x" and "qwen3-x" extend "qwen3"; "qwen30" does not.
bool continues(std::string_view name, std::string_view prefix) {
  constexpr std::string_view kSeparators = "_-.";
  return name.starts_with(prefix) &&
         (name.size() == prefix.size() ||
          kSeparators.find(name[prefix.size()]) != std::string_view::npos);
}

bool is_part(std::string_view part) {
  return part == "weight" || part == "scales" || part == "biases" || part == "bias";
}

bool is_in(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// A tensor's name inside its decoder.
struct LocalName {
  std::string_view name;
  bool in_language_model = false;
};

LocalName local_name(std::string_view tensor) {
  for (const std::string_view scope :
       {"language_model.model.", "model.language_model.", "language_model."}) {
    if (tensor.starts_with(scope)) {
      return {tensor.substr(scope.size()), true};
    }
  }
  constexpr std::string_view kModel = "model.";
  return {tensor.starts_with(kModel) ? tensor.substr(kModel.size()) : tensor, false};
}

bool is_nested(std::span<const std::string> tensors) {
  return std::ranges::any_of(tensors, [](const std::string& tensor) {
    return local_name(tensor).in_language_model;
  });
}

std::int64_t layer_count(const Json& config) {
  const auto text = config.find("text_config");
  const bool nested = text != config.end() && text->is_object();
  return json_int(nested ? *text : config, "num_hidden_layers", 0);
}

// Finds the reason why a checkpoint does not have a layout.
class Misfit {
 public:
  Misfit(const Family& family, const Json& config, std::span<const std::string> tensors)
      : layout_(family.layout),
        nested_(family.nested && is_nested(tensors)),
        tensors_(tensors),
        layer_count_(layer_count(config)) {}

  // Returns none if it has the layout.
  std::optional<std::string> find() {
    for (const std::string& tensor : tensors_) {
      if (!take(tensor)) {
        return fmt::format("it has a tensor {}", quote(tensor));
      }
    }
    if (!has_table_) {
      return "it has no tensor 'embed_tokens.weight'";
    }
    if (!has_norm_) {
      return "it has no tensor 'norm.weight'";
    }
    if (static_cast<std::int64_t>(layers_.size()) != layer_count_) {
      return fmt::format(
          "it has {} layers and num_hidden_layers is {}", layers_.size(), layer_count_
      );
    }
    for (const auto& [layer, modules] : layers_) {
      for (const std::string_view module : layout_.all) {
        if (!modules.contains(module)) {
          return fmt::format("it has no tensor 'layers.{}.{}.weight'", layer, module);
        }
      }
    }
    return std::nullopt;
  }

 private:
  // Returns true if the layout has such a tensor; records the module.
  bool take(std::string_view tensor) {
    if (tensor.ends_with("rotary_emb.inv_freq")) {
      return true;
    }
    const auto [name, in_language_model] = local_name(tensor);
    if (in_language_model && !nested_) {
      return false;
    }
    if (const auto in_layer = numbered_name(name, "layers.")) {
      return nested_ == in_language_model && take_of_layer(in_layer->number, in_layer->rest);
    }
    const auto dot = name.find('.');
    if (dot != std::string_view::npos && is_in(layout_.parts, name.substr(0, dot))) {
      return true;
    }
    // Tensors beside a language model belong to its image and sound parts.
    return take_of_top(name) || (nested_ && !in_language_model);
  }

  bool take_of_top(std::string_view name) {
    const auto [module, part] = parted(name);
    const bool is_table = is_token_table(module);
    has_table_ = has_table_ || (is_table && part == "weight");
    has_norm_ = has_norm_ || (module == "norm" && part == "weight");
    const bool known = is_table || module == "norm" || module == "lm_head";
    return known && is_part(part) && part != "bias";
  }

  bool take_of_layer(std::int64_t layer, std::string_view name) {
    if (is_in(layout_.tensors, name)) {
      return true;
    }
    const auto [module, part] = parted(name);
    // A norm with a bias is a different norm.
    const bool is_norm = module.ends_with("norm");
    const bool known = is_in(layout_.all, module) || is_in(layout_.some, module);
    if (known && part == "weight") {
      layers_[layer].insert(module);
    }
    return known && (is_norm ? part == "weight" : is_part(part));
  }

  // Splits "self_attn.q_proj.weight" into module and part.
  static std::pair<std::string_view, std::string_view> parted(std::string_view name) {
    const auto dot = name.rfind('.');
    return {name.substr(0, dot), dot == std::string_view::npos ? "" : name.substr(dot + 1)};
  }

  const Layout& layout_;
  bool nested_;
  std::span<const std::string> tensors_;
  std::int64_t layer_count_;
  bool has_table_ = false;
  bool has_norm_ = false;
  std::map<std::int64_t, std::set<std::string_view>> layers_;
};

std::optional<std::string> misfit(
    const Family& family, const Json& config, std::span<const std::string> tensors
) {
  return Misfit(family, config, tensors).find();
}

// No other family has Qwen 3.5's layers of linear attention.
bool has_linear_attention(std::span<const std::string> tensors) {
  return std::ranges::any_of(tensors, [](const std::string& tensor) {
    return tensor.find(".linear_attn.in_proj_qkv.") != std::string::npos;
  });
}

Detection renamed(const Json& config, std::string_view model_type, std::string warning) {
  Detection result{.config = config, .warning = std::move(warning)};
  result.config["model_type"] = model_type;
  return result;
}

// The `model_type`, or the text part's if it is missing.
std::string name_of(const Json& config) {
  std::string name = json_string(config, "model_type", "");
  const auto text = config.find("text_config");
  if (name.empty() && text != config.end() && text->is_object()) {
    name = json_string(*text, "model_type", "");
  }
  return name;
}

// The family of a checkpoint with an unknown name; none if no family fits.
std::optional<Family> family_of(
    std::string_view name, const Json& config, std::span<const std::string> tensors
) {
  const auto all = families();
  const auto named = std::ranges::find_if(all, [&](const Family& candidate) {
    return continues(name, candidate.prefix);
  });
  if (named != all.end() && !misfit(*named, config, tensors)) {
    return *named;
  }
  Family hybrid = qwen3_5_family("");
  if (has_linear_attention(tensors) && !misfit(hybrid, config, tensors)) {
    return hybrid;
  }
  return std::nullopt;
}

}  // namespace

Detection detect_architecture(const Json& config, std::span<const std::string> tensors) {
  require(
      config.is_object(),
      ErrorCode::kCorruptData,
      "[config] is of type {}, expected an object",
      config.type_name()
  );
  const auto model_type = json_string(config, "model_type", "");
  const auto known = all_model_types();
  if (std::ranges::find(known, std::string_view(model_type)) != known.end()) {
    return {.config = config, .warning = {}};
  }
  const std::string named = model_type.empty() ? "missing" : quote(model_type);
  std::string reason = "that is another design";
  if (!is_one_of_the_others(model_type)) {
    if (const auto family = family_of(name_of(config), config, tensors)) {
      const std::string_view own = family->model_type;
      return renamed(config, own, fmt::format("model_type is {}, which runs as {}", named, own));
    }
    const auto strange = misfit({"", "generic", llama_layout()}, config, tensors);
    if (!strange) {
      constexpr std::string_view kText =
          "model_type is {}; its tensors are a llama's, so it runs as generic and may answer "
          "wrongly";
      return renamed(config, "generic", fmt::format(kText, named));
    }
    reason = "and it is no llama: " + *strange;
  }
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format(
          "[config] model_type is {}, expected one of {} ({}); {}",
          named,
          fmt::join(known, ", "),
          reason,
          kHowToAdd
      )
  );
}

}  // namespace saker::models

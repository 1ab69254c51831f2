// SPDX-License-Identifier: Apache-2.0
#include "saker/models/detect.h"

#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/base/utf8.h"
#include "saker/models/model.h"

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
#include <system_error>
#include <vector>

namespace saker::models {
namespace {

using Names = std::vector<std::string_view>;

// Modules of each layer.
struct Layout {
  Names all;           // That every layer has,
  Names some = {};     // and that a layer may have.
  Names tensors = {};  // Of `some`, those that are no modules.
};

struct Family {
  std::string_view prefix;
  std::string_view model_type;
  Layout layout;
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

// A longer prefix comes before what it continues.
std::vector<Family> families() {
  const Names head_norms{"self_attn.q_norm", "self_attn.k_norm"};
  const Names sandwich{"pre_feedforward_layernorm", "post_feedforward_layernorm"};
  const Layout llama = llama_layout();
  const Layout qwen3{.all = joined(llama.all, head_norms)};
  const Layout gemma2{.all = joined(llama.all, sandwich)};
  const Layout gemma3{.all = joined(gemma2.all, head_norms)};
  const Names delta{
      "linear_attn.in_proj_qkv",
      "linear_attn.in_proj_z",
      "linear_attn.in_proj_a",
      "linear_attn.in_proj_b",
      "linear_attn.out_proj",
      "linear_attn.conv1d",
      "linear_attn.norm",
  };
  const Layout hybrid{
      .all = mlp_modules(),
      .some = joined(joined(attention_modules(), head_norms), delta),
      .tensors = {"linear_attn.A_log", "linear_attn.dt_bias"},
  };
  return {
      {"qwen3_5", "qwen3_5", hybrid},
      {"qwen3.5", "qwen3_5", hybrid},
      {"qwen3", "qwen3", qwen3},
      {"qwen2", "qwen2", llama},
      {"llama", "llama", llama},
      {"mistral", "mistral", llama},
      {"gemma3", "gemma3_text", gemma3},
      {"gemma2", "gemma2", gemma2},
      {"gemma", "gemma", llama},
  };
}

// Designs of their own that continue a family's name, or that compute something else on a llama's
// tensors without a field of the configuration that says so.
constexpr std::array<std::string_view, 11> kOthers{
    "qwen3_next",
    "qwen3_moe",
    "qwen3_vl",
    "qwen2_moe",
    "llama4",
    "mistral3",
    "mistral4",
    "ministral3",
    "gemma3n",
    "helium",
    "ernie4_5",
};

bool is_one_of_the_others(std::string_view model_type) {
  return std::ranges::any_of(kOthers, [&](std::string_view other) {
    return model_type.starts_with(other);
  });
}

// "qwen3_x" and "qwen3-x" continue "qwen3"; "qwen30" does not.
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

// Why a checkpoint is not of a layout.
class Misfit {
 public:
  Misfit(const Layout& layout, std::int64_t layer_count)
      : layout_(layout), layer_count_(layer_count) {}

  // None where it is.
  std::optional<std::string> find(std::span<const std::string> tensors) {
    for (const std::string& tensor : tensors) {
      if (!take(tensor)) {
        return fmt::format("it has a tensor {}", quote(tensor));
      }
    }
    for (const std::string_view name : {"embed_tokens", "norm"}) {
      if (!top_.contains(name)) {
        return fmt::format("it has no tensor '{}.weight'", name);
      }
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
  // Whether the layout has such a tensor.
  bool take(std::string_view tensor) {
    if (tensor.ends_with("rotary_emb.inv_freq")) {
      return true;
    }
    constexpr std::string_view kModel = "model.";
    if (tensor.starts_with(kModel)) {
      tensor.remove_prefix(kModel.size());
    }
    const auto in_layer = numbered_name(tensor, "layers.");
    const std::string_view name = in_layer ? in_layer->rest : tensor;
    const auto dot = name.rfind('.');
    const std::string_view module = name.substr(0, dot);
    const std::string_view part = dot == std::string_view::npos ? "" : name.substr(dot + 1);
    if (!in_layer) {
      const bool known = module == "embed_tokens" || module == "norm" || module == "lm_head";
      if (known && part == "weight") {
        top_.insert(module);
      }
      return known && is_part(part) && part != "bias";
    }
    if (is_in(layout_.tensors, name)) {
      return true;
    }
    // A norm with a bias is another norm.
    const bool is_norm = module.ends_with("norm");
    const bool known = is_in(layout_.all, module) || is_in(layout_.some, module);
    if (known && part == "weight") {
      layers_[in_layer->number].insert(module);
    }
    return known && (is_norm ? part == "weight" : is_part(part));
  }

  const Layout& layout_;
  std::int64_t layer_count_ = 0;
  std::set<std::string_view> top_;
  std::map<std::int64_t, std::set<std::string_view>> layers_;
};

std::optional<std::string> misfit(
    const Layout& layout, const Json& config, std::span<const std::string> tensors
) {
  return Misfit(layout, json_int(config, "num_hidden_layers", 0)).find(tensors);
}

Detection renamed(const Json& config, std::string_view model_type, std::string warning) {
  Detection result{.config = config, .warning = std::move(warning)};
  result.config["model_type"] = model_type;
  return result;
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
  const auto known = supported_model_types();
  if (std::ranges::find(known, std::string_view(model_type)) != known.end()) {
    return {.config = config, .warning = {}};
  }
  const std::string named = model_type.empty() ? "missing" : quote(model_type);
  std::string reason = "that is another design";
  if (!is_one_of_the_others(model_type)) {
    const auto all = families();
    const auto family = std::ranges::find_if(all, [&](const Family& candidate) {
      return continues(model_type, candidate.prefix);
    });
    if (family != all.end() && !misfit(family->layout, config, tensors)) {
      const std::string_view own = family->model_type;
      return renamed(config, own, fmt::format("model_type is {}, which runs as {}", named, own));
    }
    const auto strange = misfit(llama_layout(), config, tensors);
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
          "[config] model_type is {}, expected one of {} ({})",
          named,
          fmt::join(known, ", "),
          reason
      )
  );
}

}  // namespace saker::models

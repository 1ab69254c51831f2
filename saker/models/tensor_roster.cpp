// SPDX-License-Identifier: Apache-2.0
#include "saker/models/tensor_roster.h"

#include "saker/base/numbered_name.h"
#include "saker/models/decoder.h"
#include "saker/models/decoder_config.h"
#include "saker/models/encoder_config.h"
#include "saker/models/layer_modules.h"
#include "saker/models/moe_config.h"
#include "saker/models/mtp.h"
#include "saker/models/token_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <string>
#include <string_view>

namespace saker::models {
namespace {

using Modules = TensorRoster::Modules;
using Kind = RosterModule::Kind;

constexpr int kUnknown = 0;

// Adds the MTP head's modules, which are optional: the model runs without them.
void add_mtp(Modules& modules, const DecoderConfig& config, const MtpNames& names) {
  const auto attends = [](const LayerConfig& layer) {
    return layer.mixing == TokenMixing::kAttention && !layer.shares_rows_of;
  };
  const auto found = std::ranges::find_if(config.layers | std::views::reverse, attends);
  if (found == config.layers.rend()) {
    return;
  }
  const std::string scope =
      names.is_layer ? fmt::format("layers.{}.", config.layers.size()) : std::string("mtp.");
  const auto path = [&](std::string_view name) { return fmt::format("{}{}", scope, name); };
  Modules head;
  head.emplace(path(names.join), roster_linear(2 * config.hidden, config.hidden));
  for (const std::string_view name : {names.token_norm, names.hidden_norm, names.norm}) {
    head.emplace(path(name), roster_norm(config.hidden));
  }
  const int layers = names.is_layer ? 1 : kMaxMtpLayers;
  for (int i = 0; i < layers; ++i) {
    add_layer_modules(
        head,
        names.is_layer ? scope : fmt::format("{}layers.{}.", scope, i),
        config,
        *found,
        {.stream_norms = stream_norms(config, pre_norm_layer)}
    );
  }
  for (auto& [name, module] : head) {
    module.is_required = false;
    modules.emplace(name, module);
  }
}

// Adds the layers of vectors of texts and of classes, which few checkpoints have. Real ones have
// two dense layers.
void add_embedding_head(Modules& modules) {
  for (const std::string_view name : {"dense.0", "dense.1", "dense.2", "dense.3", "score"}) {
    modules.emplace(name, RosterModule{.kind = Kind::kAnyLinear, .is_required = false});
  }
}

std::string_view without_scopes(std::string_view name) {
  constexpr std::array<std::string_view, 5> kTextScopes{
      "model.", "language_model.", "backbone.", "bert.", "roberta."
  };
  for (bool stripped = true; stripped;) {
    stripped = false;
    for (const std::string_view scope : kTextScopes) {
      if (name.starts_with(scope)) {
        name.remove_prefix(scope.size());
        stripped = true;
      }
    }
  }
  return name;
}

struct Alias {
  std::string_view name;
  std::string_view usual;
};

// The usual name of an expert's projection.
std::string_view projection_name(std::string_view name) {
  constexpr std::array<Alias, 5> kAliases{{
      {"w1", "gate_proj"},
      {"w3", "up_proj"},
      {"w2", "down_proj"},
      {"fc1", "up_proj"},
      {"fc2", "down_proj"},
  }};
  const auto* const found = std::ranges::find(kAliases, name, &Alias::name);
  return found != kAliases.end() ? found->usual : name;
}

// "layers.0.mlp.experts.3.w1.weight" and the same without the number become
// "layers.0.mlp.switch_mlp.gate_proj.weight".
std::string stacked_name(std::string_view name) {
  constexpr std::array<Alias, 2> kWhole{{
      {".block_sparse_moe.input_linear", kRosterFusedInputs},
      {".block_sparse_moe.output_linear", "down_proj"},
  }};
  for (const Alias& alias : kWhole) {
    if (const auto at = name.find(alias.name); at != std::string_view::npos) {
      const std::string_view leaf = name.substr(at + alias.name.size());
      const std::string_view scope = name.substr(0, name.find('.', at + 1));
      return fmt::format("{}.{}.{}{}", scope, kRosterStacks, alias.usual, leaf);
    }
  }
  constexpr std::array<std::string_view, 3> kExpertScopes{
      ".experts.switch_glu.", ".experts.", ".switch_mlp."
  };
  for (const std::string_view scope : kExpertScopes) {
    const auto at = name.find(scope);
    if (at == std::string_view::npos) {
      continue;
    }
    std::string_view rest = name.substr(at + scope.size());
    if (is_choice_bias(rest)) {
      break;  // The router's, under the experts' name.
    }
    const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const bool is_numbered = digits > 0 && digits < rest.size() && rest[digits] == '.';
    rest.remove_prefix(is_numbered ? digits + 1 : 0);
    const auto dot = std::min(rest.find('.'), rest.size());
    const std::string_view leaf = rest.substr(dot);
    const std::string_view projection = projection_name(rest.substr(0, dot));
    return fmt::format("{}.{}.{}{}", name.substr(0, at), kRosterStacks, projection, leaf);
  }
  return std::string(name);
}

}  // namespace

TensorRoster::TensorRoster(const DecoderConfig& config, const RosterOptions& options) {
  modules_.emplace("embed_tokens", roster_linear(config.hidden, config.vocab_size));
  modules_.emplace(config.names.final_norm, roster_norm(config.hidden));
  if (config.head != HeadChoice::kTied) {
    RosterModule head = roster_linear(config.hidden, config.vocab_size);
    head.is_required = config.head == HeadChoice::kUntied;
    modules_.emplace("lm_head", head);
  }
  if (config.layer_input_size > 0) {
    const int inputs = static_cast<int>(config.layers.size()) * config.layer_input_size;
    modules_.emplace("embed_tokens_per_layer", roster_linear(inputs, kUnknown));
    modules_.emplace("per_layer_model_projection", roster_linear(config.hidden, inputs));
    modules_.emplace("per_layer_projection_norm", roster_norm(config.layer_input_size));
  }
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    add_layer_modules(modules_, fmt::format("layers.{}.", i), config, config.layers[i], options);
  }
  add_embedding_head(modules_);
  if (options.mtp_head) {
    add_mtp(modules_, config, {});
  }
  if (options.next_layer) {
    add_mtp(modules_, config, kNextLayerNames);
  }
}

TensorRoster::TensorRoster(const EncoderConfig& config) {
  const EncoderNames& names = config.names;
  const auto add = [&](std::string_view scope, std::string_view name, const RosterModule& module) {
    if (!name.empty()) {
      modules_.emplace(fmt::format("{}{}", scope, name), module);
    }
  };
  const RosterModule own_norm{.kind = Kind::kLayerNorm, .rows = config.hidden};
  add("", names.words, roster_linear(config.hidden, config.vocab_size));
  add("", names.positions, roster_linear(config.hidden, config.position_count));
  add("", names.types, roster_linear(config.hidden, config.type_count));
  add("", names.input_norm, own_norm);
  add("", names.final_norm, own_norm);
  const int gates = config.gated ? 2 : 1;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const std::string layer = fmt::format("{}.{}.", names.layers, i);
    for (const std::string_view name : names.attention_inputs) {
      const int parts = static_cast<int>(names.attention_inputs.size());
      add(layer, name, roster_linear(config.hidden, 3 * config.hidden / parts));
    }
    add(layer, names.attention_output, roster_linear(config.hidden, config.hidden));
    for (const std::string_view name : names.mlp_inputs) {
      const int parts = static_cast<int>(names.mlp_inputs.size());
      add(layer, name, roster_linear(config.hidden, gates * config.intermediate / parts));
    }
    add(layer, names.mlp_output, roster_linear(config.intermediate, config.hidden));
    add(layer, names.mlp_norm, own_norm);
    // The input's norm is the first layer's.
    if (!config.pre_norm || i > 0) {
      add(layer, names.attention_norm, own_norm);
    }
  }
  const ClassifierLayout& classifier = config.classifier;
  constexpr RosterModule kHead{.kind = Kind::kAnyLinear, .is_required = false};
  add("", classifier.dense, kHead);
  add("", classifier.norm, {.kind = Kind::kLayerNorm, .is_required = false});
  add("", classifier.output, kHead);
  add_embedding_head(modules_);
}

bool TensorRoster::has(std::string_view tensor) const {
  const std::string name = roster_name(tensor);
  if (const auto lone = modules_.find(name); lone != modules_.end()) {
    // Fused experts have no leaf.
    return lone->second.kind == Kind::kTensor || lone->second.experts > 0;
  }
  const auto dot = name.rfind('.');
  const auto module = modules_.find(name.substr(0, dot));
  if (dot == std::string::npos || module == modules_.end() ||
      module->second.kind == Kind::kTensor) {
    return false;
  }
  const std::string part = name.substr(dot + 1);
  if (module->second.kind == Kind::kLayerNorm) {
    return part == "weight" || part == "bias";
  }
  return part == "weight" || (module->second.kind != Kind::kNorm &&
                              (part == "scales" || part == "biases" || part == "bias"));
}

std::optional<int> TensorRoster::columns(std::string_view module) const {
  const auto found = modules_.find(roster_name(module));
  return found != modules_.end() && found->second.kind == Kind::kLinear
             ? std::optional(found->second.columns)
             : std::nullopt;
}

std::string roster_name(std::string_view name) {
  // Parts of other modules may lie in a scope of the same name.
  constexpr std::array<std::string_view, 4> kLeaves{"", ".weight", ".scales", ".biases"};
  std::string bare = stacked_name(without_scopes(name));
  for (const std::string_view table : kTokenTables) {
    const bool is_table =
        bare.starts_with(table) &&
        std::ranges::find(kLeaves, std::string_view(bare).substr(table.size())) != kLeaves.end();
    if (is_table) {
      return std::string(kTokenTables.front()) + bare.substr(table.size());
    }
  }
  return bare;
}

bool is_of_embedding_head(std::string_view tensor) {
  return tensor.starts_with("dense.") || tensor.starts_with("score.");
}

}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
#include "saker/models/tensor_roster.h"

#include "saker/base/numbered_name.h"
#include "saker/models/decoder.h"
#include "saker/models/decoder_config.h"
#include "saker/models/encoder_config.h"
#include "saker/models/mtp.h"
#include "saker/models/token_table.h"
#include "saker/nn/experts/mlp_beside_experts.h"

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
// Names of experts in the roster, whatever a checkpoint's are.
constexpr std::string_view kStacks = "switch_mlp";
constexpr std::string_view kFusedInputs = "gate_up_proj";

RosterModule linear(int columns, int rows) {
  return {.kind = Kind::kLinear, .columns = columns, .rows = rows};
}

RosterModule norm(int size) {
  return {.kind = Kind::kNorm, .rows = size};
}

class LayerModules {
 public:
  LayerModules(Modules& modules, std::string prefix, const DecoderConfig& config)
      : modules_(modules), prefix_(std::move(prefix)), config_(config) {}

  void add(const LayerConfig& layer, const RosterOptions& options) {
    for (const std::string_view name : options.stream_norms) {
      put(name, norm(config_.hidden));
    }
    if (options.layer_scalars) {
      put("layer_scalar", {.kind = Kind::kTensor, .is_required = false});
    }
    if (config_.layer_input_size > 0) {
      put("per_layer_input_gate", linear(config_.hidden, config_.layer_input_size));
      put("per_layer_projection", linear(config_.layer_input_size, config_.hidden));
      put("post_per_layer_input_norm", norm(config_.hidden));
    }
    add_mixing(layer);
    if (layer.feed_forward == FeedForward::kNone) {
      return;
    }
    if (layer.experts && config_.mlp_beside_experts) {
      add_mlp(layer);
      add_beside_mlp();
    } else {
      layer.experts ? add_experts(fmt::format("{}.", config_.feed_forward)) : add_mlp(layer);
    }
  }

 private:
  void put(std::string_view name, RosterModule module) {
    module.is_required = module.is_required && required_;
    modules_.emplace(fmt::format("{}{}", prefix_, name), module);
  }

  void put_in(std::string_view scope, std::string_view name, const RosterModule& module) {
    put(fmt::format("{}.{}", scope, name), module);
  }

  void add_mixing(const LayerConfig& layer) {
    switch (layer.mixing) {
      case TokenMixing::kAttention:
        return config_.latent ? add_latent(*config_.latent) : add_attention(layer);
      case TokenMixing::kGatedDelta:
        return add_delta();
      case TokenMixing::kShortConvolution:
        return add_convolution();
      case TokenMixing::kMamba2:
        return add_mamba2();
      case TokenMixing::kNone:
        return;
    }
  }

  void add_attention(const LayerConfig& layer) {
    const auto attention = [&](std::string_view name) {
      return fmt::format("{}.{}", config_.names.attention, name);
    };
    const int head_dim = config_.head_dim_of(layer);
    const int kv_rows = (layer.kv_heads > 0 ? layer.kv_heads : config_.kv_heads) * head_dim;
    const int heads = config_.heads * head_dim;
    const auto joined = [&](int rows) { return config_.norms_join_heads ? rows : head_dim; };
    put(attention(config_.attention_names.output), linear(heads, config_.hidden));
    if (config_.attention_sinks) {
      put("self_attn.sinks", {.kind = Kind::kTensor});
    }
    if (config_.head_norms) {
      put(attention(config_.attention_names.query_norm), norm(joined(heads)));
    }
    if (config_.joined_projections) {
      put(attention("qkv_proj"), linear(config_.hidden, heads + 2 * kv_rows));
      return;
    }
    const int gates = config_.attention_gate ? 2 : 1;
    put(attention("q_proj"), linear(config_.hidden, gates * heads));
    if (layer.shares_rows_of) {
      return;
    }
    put(attention("k_proj"), linear(config_.hidden, kv_rows));
    if (!layer.keys_are_values) {
      put(attention("v_proj"), linear(config_.hidden, kv_rows));
    }
    if (config_.head_norms) {
      put(attention(config_.attention_names.key_norm), norm(joined(kv_rows)));
    }
  }

  void add_latent(const nn::LatentOptions& latent) {
    const int queries = config_.heads * (latent.plain_dim + latent.rope_dim);
    if (latent.query_rank > 0) {
      put("self_attn.q_a_proj", linear(config_.hidden, latent.query_rank));
      put("self_attn.q_a_layernorm", norm(latent.query_rank));
      put("self_attn.q_b_proj", linear(latent.query_rank, queries));
    } else {
      put("self_attn.q_proj", linear(config_.hidden, queries));
    }
    put("self_attn.kv_a_proj_with_mqa", linear(config_.hidden, latent.row_dim()));
    put("self_attn.kv_a_layernorm", norm(latent.rank));
    put("self_attn.o_proj", linear(config_.heads * latent.value_dim, config_.hidden));
    // Either one or the other two.
    const auto put_optional = [&](std::string_view name, RosterModule module, int heads) {
      module.experts = heads;
      module.is_required = false;
      put(name, module);
    };
    const int rows = config_.heads * (latent.plain_dim + latent.value_dim);
    put_optional("self_attn.kv_b_proj", linear(latent.rank, rows), 0);
    put_optional("self_attn.embed_q", linear(latent.plain_dim, latent.rank), config_.heads);
    put_optional("self_attn.unembed_out", linear(latent.rank, latent.value_dim), config_.heads);
  }

  void add_delta() {
    RosterModule input = linear(config_.hidden, kUnknown);
    for (const std::string_view name : {"in_proj_qkv", "in_proj_z"}) {
      input.fused = "in_proj_qkvz";
      put(fmt::format("linear_attn.{}", name), input);
    }
    for (const std::string_view name : {"in_proj_a", "in_proj_b"}) {
      input.fused = "in_proj_ba";
      put(fmt::format("linear_attn.{}", name), input);
    }
    input.is_required = false;
    input.fused = {};
    put("linear_attn.in_proj_qkvz", input);
    put("linear_attn.in_proj_ba", input);
    put("linear_attn.out_proj", linear(config_.delta.shape.outputs(), config_.hidden));
    put("linear_attn.conv1d", norm(kUnknown));
    put("linear_attn.norm", norm(kUnknown));
    put("linear_attn.A_log", {.kind = Kind::kTensor});
    put("linear_attn.dt_bias", {.kind = Kind::kTensor});
  }

  void add_convolution() {
    const std::string_view scope = config_.names.short_convolution;
    put_in(scope, "in_proj", linear(config_.hidden, 3 * config_.hidden));
    put_in(scope, "out_proj", linear(config_.hidden, config_.hidden));
    put_in(scope, "conv", {.kind = Kind::kLayerNorm});
  }

  void add_mamba2() {
    const std::string_view scope = config_.names.mamba2;
    const kernels::ScanShape& shape = config_.mamba2.shape;
    put_in(
        scope, "in_proj", linear(config_.hidden, shape.outputs() + shape.channels() + shape.heads)
    );
    put_in(scope, "out_proj", linear(shape.outputs(), config_.hidden));
    put_in(scope, "conv1d", {.kind = Kind::kLayerNorm});
    if (config_.mamba2.norm_groups > 0) {
      put_in(scope, "norm", norm(shape.outputs()));
    }
    for (const std::string_view name : {"A_log", "D", "dt_bias"}) {
      put_in(scope, name, {.kind = Kind::kTensor});
    }
  }

  void add_mlp(const LayerConfig& layer) {
    const int inner = layer.intermediate > 0 ? layer.intermediate : config_.intermediate;
    const bool joined = config_.joined_projections || config_.joined_mlp;
    required_ = config_.mlx_feed_forward.empty();
    add_mlp(config_.feed_forward, config_.mlp_names, inner, joined, config_.gated_mlp);
    if (!required_) {
      add_mlp(config_.mlx_feed_forward, {}, inner, /*joined=*/false, /*gated=*/true);
    }
    required_ = true;
  }

  void add_mlp(
      std::string_view scope, const nn::MlpNames& names, int inner, bool joined, bool gated
  ) {
    const auto in_scope = [&](std::string_view name) { return fmt::format("{}.{}", scope, name); };
    put(in_scope(names.down), linear(inner, config_.hidden));
    if (joined) {
      put(in_scope(names.joined), linear(config_.hidden, 2 * inner));
      return;
    }
    if (gated) {
      put(in_scope(names.gate), linear(config_.hidden, inner));
    }
    put(in_scope(names.up), linear(config_.hidden, inner));
  }

  // See nn::MlpBesideExperts.
  void add_beside_mlp() {
    const nn::MlpBesideExpertsOptions names{.mlp = {}, .moe = {}, .norm = {}};
    put(names.router_scale, {.kind = Kind::kTensor});
    for (const std::string_view name :
         {names.mlp_output_norm, names.experts_norm, names.experts_output_norm}) {
      put(name, norm(config_.hidden));
    }
    add_experts("");
  }

  // `scope`: with its dot.
  void add_experts(std::string_view scope) {
    const nn::MoeOptions& moe = config_.moe;
    const auto in_scope = [&](std::string_view name) { return fmt::format("{}{}", scope, name); };
    put(in_scope(moe.names.router), linear(config_.hidden, moe.experts));
    if (!moe.names.choice_bias.empty()) {
      const bool is_required = !moe.names.choice_bias_may_lack;
      put(in_scope(moe.names.choice_bias), {.kind = Kind::kTensor, .is_required = is_required});
    }
    if (!moe.names.expert_scales.empty()) {
      put(in_scope(moe.names.expert_scales), {.kind = Kind::kTensor});
    }
    add_stacks(in_scope(kStacks));
    if (moe.latent > 0) {
      put(in_scope(moe.names.to_latent), linear(config_.hidden, moe.latent));
      put(in_scope(moe.names.from_latent), linear(moe.latent, config_.hidden));
    }
    const nn::SharedExpertOptions& shared = moe.shared;
    if (shared.intermediate == 0) {
      return;
    }
    add_mlp(
        shared.beside ? std::string(shared.name) : in_scope(shared.name),
        shared.names,
        shared.intermediate,
        shared.joined,
        moe.gated
    );
    if (!shared.gate.empty()) {
      put(in_scope(shared.gate), linear(config_.hidden, 1));
    }
  }

  void add_stacks(const std::string& scope) {
    const nn::MoeOptions& moe = config_.moe;
    const auto experts = [&](int columns, int rows, std::string_view fused) {
      RosterModule stack = linear(columns, rows);
      stack.experts = moe.experts;
      stack.fused = fused;
      stack.turned = moe.names.fused_transposed;
      return stack;
    };
    for (const std::string_view name : {"gate_up_proj_bias", "down_proj_bias"}) {
      put(fmt::format("{}.{}", scope, name), {.kind = Kind::kTensor, .is_required = false});
    }
    if (moe.gated) {
      put(scope + ".gate_proj", experts(moe.expert_size(), moe.intermediate, kFusedInputs));
      RosterModule fused = experts(moe.expert_size(), 2 * moe.intermediate, {});
      fused.is_required = false;
      put(fmt::format("{}.{}", scope, kFusedInputs), fused);
    }
    put(scope + ".up_proj", experts(moe.expert_size(), moe.intermediate, kFusedInputs));
    put(scope + ".down_proj", experts(moe.intermediate, moe.expert_size(), {}));
  }

  Modules& modules_;
  std::string prefix_;
  const DecoderConfig& config_;
  bool required_ = true;  // False while modules are added of which a checkpoint has one form.
};

// Adds the MTP head's modules, which are optional: the model runs without them.
void add_mtp(Modules& modules, const DecoderConfig& config) {
  const auto attends = [](const LayerConfig& layer) {
    return layer.mixing == TokenMixing::kAttention && !layer.shares_rows_of;
  };
  const auto found = std::ranges::find_if(config.layers | std::views::reverse, attends);
  if (found == config.layers.rend()) {
    return;
  }
  Modules head;
  head.emplace("mtp.fc", linear(2 * config.hidden, config.hidden));
  for (const std::string_view name : {"pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"}) {
    head.emplace(fmt::format("mtp.{}", name), norm(config.hidden));
  }
  for (int i = 0; i < kMaxMtpLayers; ++i) {
    LayerModules(head, fmt::format("mtp.layers.{}.", i), config)
        .add(*found, {.stream_norms = stream_norms(config, pre_norm_layer)});
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
      {".block_sparse_moe.input_linear", kFusedInputs},
      {".block_sparse_moe.output_linear", "down_proj"},
  }};
  for (const Alias& alias : kWhole) {
    if (const auto at = name.find(alias.name); at != std::string_view::npos) {
      const std::string_view leaf = name.substr(at + alias.name.size());
      const std::string_view scope = name.substr(0, name.find('.', at + 1));
      return fmt::format("{}.{}.{}{}", scope, kStacks, alias.usual, leaf);
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
    const auto digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const bool is_numbered = digits > 0 && digits < rest.size() && rest[digits] == '.';
    rest.remove_prefix(is_numbered ? digits + 1 : 0);
    const auto dot = std::min(rest.find('.'), rest.size());
    const std::string_view leaf = rest.substr(dot);
    const std::string_view projection = projection_name(rest.substr(0, dot));
    return fmt::format("{}.{}.{}{}", name.substr(0, at), kStacks, projection, leaf);
  }
  return std::string(name);
}

}  // namespace

TensorRoster::TensorRoster(const DecoderConfig& config, const RosterOptions& options) {
  modules_.emplace("embed_tokens", linear(config.hidden, config.vocab_size));
  modules_.emplace(config.names.final_norm, norm(config.hidden));
  if (config.head != HeadChoice::kTied) {
    RosterModule head = linear(config.hidden, config.vocab_size);
    head.is_required = config.head == HeadChoice::kUntied;
    modules_.emplace("lm_head", head);
  }
  if (config.layer_input_size > 0) {
    const int inputs = static_cast<int>(config.layers.size()) * config.layer_input_size;
    modules_.emplace("embed_tokens_per_layer", linear(inputs, kUnknown));
    modules_.emplace("per_layer_model_projection", linear(config.hidden, inputs));
    modules_.emplace("per_layer_projection_norm", norm(config.layer_input_size));
  }
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    LayerModules(modules_, fmt::format("layers.{}.", i), config).add(config.layers[i], options);
  }
  add_embedding_head(modules_);
  if (options.mtp_head) {
    add_mtp(modules_, config);
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
  add("", names.words, linear(config.hidden, config.vocab_size));
  add("", names.positions, linear(config.hidden, config.position_count));
  add("", names.types, linear(config.hidden, config.type_count));
  add("", names.input_norm, own_norm);
  add("", names.final_norm, own_norm);
  const int gates = config.gated ? 2 : 1;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const std::string layer = fmt::format("{}.{}.", names.layers, i);
    for (const std::string_view name : names.attention_inputs) {
      const int parts = static_cast<int>(names.attention_inputs.size());
      add(layer, name, linear(config.hidden, 3 * config.hidden / parts));
    }
    add(layer, names.attention_output, linear(config.hidden, config.hidden));
    for (const std::string_view name : names.mlp_inputs) {
      const int parts = static_cast<int>(names.mlp_inputs.size());
      add(layer, name, linear(config.hidden, gates * config.intermediate / parts));
    }
    add(layer, names.mlp_output, linear(config.intermediate, config.hidden));
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

// SPDX-License-Identifier: Apache-2.0
#include "saker/models/layer_modules.h"

#include "saker/models/decoder_config.h"
#include "saker/nn/experts/mlp_beside_experts.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace saker::models {
namespace {

using Modules = TensorRoster::Modules;
using Kind = RosterModule::Kind;

constexpr int kAnySize = 0;

class ModulesOfLayer {
 public:
  ModulesOfLayer(Modules& modules, std::string prefix, const DecoderConfig& config)
      : modules_(modules), prefix_(std::move(prefix)), config_(config) {}

  void add(const LayerConfig& layer, const RosterOptions& options) {
    for (const std::string_view name : options.stream_norms) {
      put(name, roster_norm(config_.hidden));
    }
    if (options.layer_scalars) {
      put("layer_scalar", {.kind = Kind::kTensor, .is_required = false});
    }
    if (config_.layer_input_size > 0) {
      put("per_layer_input_gate", roster_linear(config_.hidden, config_.layer_input_size));
      put("per_layer_projection", roster_linear(config_.layer_input_size, config_.hidden));
      put("post_per_layer_input_norm", roster_norm(config_.hidden));
    }
    add_mixing(layer, layer.mixing);
    add_mixing(layer, layer.beside);
    if (layer.feed_forward == FeedForward::kNone) {
      return;
    }
    if (layer.experts && config_.mlp_beside_experts) {
      add_mlp(layer);
      add_beside_mlp();
    } else {
      layer.experts ? add_experts() : add_mlp(layer);
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

  void add_mixing(const LayerConfig& layer, TokenMixing mixing) {
    switch (mixing) {
      case TokenMixing::kAttention:
        return config_.latent ? add_latent(*config_.latent) : add_attention(layer);
      case TokenMixing::kGatedDelta:
        return add_delta();
      case TokenMixing::kKda:
        return add_kda();
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
    const int heads = config_.heads_of(layer) * head_dim;
    const auto joined = [&](int rows) { return config_.norms_join_heads ? rows : head_dim; };
    put(attention(config_.attention_names.output), roster_linear(heads, config_.hidden));
    if (config_.attention_sinks) {
      put("self_attn.sinks", {.kind = Kind::kTensor});
    }
    if (config_.gate_projection) {
      const int width = config_.gate_projection->by_head ? 1 : head_dim;
      put(attention(config_.gate_projection->name),
          roster_linear(config_.hidden, config_.heads_of(layer) * width));
    }
    if (config_.head_norms) {
      put(attention(config_.attention_names.query_norm), roster_norm(joined(heads)));
    }
    if (config_.head_norms && !layer.shares_rows_of) {
      put(attention(config_.attention_names.key_norm), roster_norm(joined(kv_rows)));
    }
    if (config_.joined_projections || config_.joined_attention) {
      put(attention(config_.attention_names.joined),
          roster_linear(config_.hidden, heads + 2 * kv_rows));
      return;
    }
    const int gates = config_.attention_gate ? 2 : 1;
    put(attention("q_proj"), roster_linear(config_.hidden, gates * heads));
    if (layer.shares_rows_of) {
      return;
    }
    put(attention("k_proj"), roster_linear(config_.hidden, kv_rows));
    if (!layer.keys_are_values) {
      put(attention("v_proj"), roster_linear(config_.hidden, kv_rows));
    }
  }

  void add_latent(const nn::LatentOptions& latent) {
    const std::string_view scope = config_.names.attention;
    const int queries = config_.heads * (latent.plain_dim + latent.rope_dim);
    if (latent.query_rank > 0) {
      put_in(scope, "q_a_proj", roster_linear(config_.hidden, latent.query_rank));
      put_in(scope, "q_a_layernorm", roster_norm(latent.query_rank));
      put_in(scope, "q_b_proj", roster_linear(latent.query_rank, queries));
    } else {
      put_in(scope, "q_proj", roster_linear(config_.hidden, queries));
    }
    put_in(scope, "kv_a_proj_with_mqa", roster_linear(config_.hidden, latent.row_dim()));
    put_in(scope, "kv_a_layernorm", roster_norm(latent.rank));
    put_in(scope, latent.output, roster_linear(config_.heads * latent.value_dim, config_.hidden));
    if (latent.head_gate) {
      put_in(scope, "g_proj", roster_linear(config_.hidden, config_.heads));
    }
    // Either one or the other two.
    const auto put_optional = [&](std::string_view name, RosterModule module, int heads) {
      module.experts = heads;
      module.is_required = false;
      put_in(scope, name, module);
    };
    const int rows = config_.heads * (latent.plain_dim + latent.value_dim);
    put_optional("kv_b_proj", roster_linear(latent.rank, rows), 0);
    put_optional("embed_q", roster_linear(latent.plain_dim, latent.rank), config_.heads);
    put_optional("unembed_out", roster_linear(latent.rank, latent.value_dim), config_.heads);
  }

  void add_delta() {
    RosterModule input = roster_linear(config_.hidden, kAnySize);
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
    put("linear_attn.out_proj", roster_linear(config_.delta.shape.outputs(), config_.hidden));
    put("linear_attn.conv1d", roster_norm(kAnySize));
    put("linear_attn.norm", roster_norm(kAnySize));
    put("linear_attn.A_log", {.kind = Kind::kTensor});
    put("linear_attn.dt_bias", {.kind = Kind::kTensor});
  }

  void add_kda() {
    const std::string_view scope = config_.names.kda;
    const kernels::KdaShape& shape = config_.kda.shape;
    for (const std::string_view name : {"q_proj", "k_proj", "v_proj"}) {
      put_in(scope, name, roster_linear(config_.hidden, shape.width()));
    }
    for (const std::string_view gate : {"f", "g"}) {
      if (config_.kda.whole_gates) {
        put_in(scope, fmt::format("{}_proj", gate), roster_linear(config_.hidden, shape.width()));
        continue;
      }
      put_in(scope, fmt::format("{}_a_proj", gate), roster_linear(config_.hidden, shape.head_dim));
      put_in(scope, fmt::format("{}_b_proj", gate), roster_linear(shape.head_dim, shape.width()));
    }
    put_in(scope, "b_proj", roster_linear(config_.hidden, shape.heads));
    put_in(scope, "o_proj", roster_linear(shape.width(), config_.hidden));
    put_in(scope, "o_norm", roster_norm(shape.head_dim));
    for (const std::string_view name : {"A_log", "dt_bias"}) {
      put_in(scope, name, {.kind = Kind::kTensor});
    }
    // In one form or the other.
    RosterModule kernel = roster_norm(kAnySize);
    kernel.is_required = false;
    for (const std::string_view name :
         {"q_conv1d", "k_conv1d", "v_conv1d", "q_conv.conv", "k_conv.conv", "v_conv.conv"}) {
      put_in(scope, name, kernel);
    }
  }

  void add_convolution() {
    const std::string_view scope = config_.names.short_convolution;
    put_in(scope, "in_proj", roster_linear(config_.hidden, 3 * config_.hidden));
    put_in(scope, "out_proj", roster_linear(config_.hidden, config_.hidden));
    put_in(scope, "conv", {.kind = Kind::kLayerNorm});
  }

  void add_mamba2() {
    const std::string_view scope = config_.names.mamba2;
    const kernels::ScanShape& shape = config_.mamba2.shape;
    put_in(
        scope,
        "in_proj",
        roster_linear(config_.hidden, shape.outputs() + shape.channels() + shape.heads)
    );
    put_in(scope, "out_proj", roster_linear(shape.outputs(), config_.hidden));
    put_in(scope, "conv1d", {.kind = Kind::kLayerNorm});
    if (config_.mamba2.norm_groups > 0) {
      put_in(scope, "norm", roster_norm(shape.outputs()));
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
    put(in_scope(names.down), roster_linear(inner, config_.hidden));
    if (joined) {
      put(in_scope(names.joined), roster_linear(config_.hidden, 2 * inner));
      return;
    }
    if (config_.activation == kernels::Activation::kXielu) {
      for (const std::string_view name : {"alpha_p", "alpha_n", "beta", "eps"}) {
        put(fmt::format("{}.act_fn.{}", scope, name), {.kind = Kind::kTensor});
      }
    }
    if (gated) {
      put(in_scope(names.gate), roster_linear(config_.hidden, inner));
    }
    put(in_scope(names.up), roster_linear(config_.hidden, inner));
  }

  // See nn::MlpBesideExperts.
  void add_beside_mlp() {
    const nn::MlpBesideExpertsOptions names{.mlp = {}, .moe = {}, .norm = {}};
    put(names.router_scale, {.kind = Kind::kTensor});
    for (const std::string_view name :
         {names.mlp_output_norm, names.experts_norm, names.experts_output_norm}) {
      put(name, roster_norm(config_.hidden));
    }
    add_experts("", config_.moe.names);
  }

  void add_experts() {
    const auto usual = fmt::format("{}.", config_.feed_forward);
    if (config_.published_experts.empty()) {
      add_experts(usual, config_.moe.names);
      return;
    }
    required_ = false;
    add_experts(fmt::format("{}.", config_.published_experts), config_.moe.names);
    add_experts(usual, config_.mlx_experts);
    required_ = true;
  }

  // `scope`: with its dot.
  void add_router(
      std::string_view scope,
      std::string_view router,
      std::string_view choice_bias,
      bool bias_may_lack
  ) {
    put(fmt::format("{}{}", scope, router), roster_linear(config_.hidden, config_.moe.experts));
    if (!choice_bias.empty()) {
      put(fmt::format("{}{}", scope, choice_bias),
          {.kind = Kind::kTensor, .is_required = !bias_may_lack});
    }
  }

  // `scope`: with its dot.
  void add_experts(std::string_view scope, const nn::MoeNames& names) {
    const nn::MoeOptions& moe = config_.moe;
    const auto in_scope = [&](std::string_view name) { return fmt::format("{}{}", scope, name); };
    const bool is_required = required_;
    required_ = is_required && names.mlx_router.empty();
    add_router(scope, names.router, names.choice_bias, names.choice_bias_may_lack);
    if (!names.mlx_router.empty()) {
      add_router(scope, names.mlx_router, names.mlx_choice_bias, names.choice_bias_may_lack);
    }
    required_ = is_required;
    if (!names.expert_scales.empty()) {
      put(in_scope(names.expert_scales), {.kind = Kind::kTensor});
    }
    add_stacks(in_scope(kRosterStacks));
    if (moe.latent > 0) {
      put(in_scope(names.to_latent), roster_linear(config_.hidden, moe.latent));
      put(in_scope(names.from_latent), roster_linear(moe.latent, config_.hidden));
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
      put(in_scope(shared.gate), roster_linear(config_.hidden, 1));
    }
  }

  void add_stacks(const std::string& scope) {
    const nn::MoeOptions& moe = config_.moe;
    const auto experts = [&](int columns, int rows, std::string_view fused) {
      RosterModule stack = roster_linear(columns, rows);
      stack.experts = moe.experts;
      stack.fused = fused;
      stack.turned = moe.names.fused_transposed;
      return stack;
    };
    for (const std::string_view name : {"gate_up_proj_bias", "down_proj_bias"}) {
      put(fmt::format("{}.{}", scope, name), {.kind = Kind::kTensor, .is_required = false});
    }
    if (moe.gated) {
      put(scope + ".gate_proj", experts(moe.expert_size(), moe.intermediate, kRosterFusedInputs));
      RosterModule fused = experts(moe.expert_size(), 2 * moe.intermediate, {});
      fused.is_required = false;
      put(fmt::format("{}.{}", scope, kRosterFusedInputs), fused);
    }
    put(scope + ".up_proj", experts(moe.expert_size(), moe.intermediate, kRosterFusedInputs));
    put(scope + ".down_proj", experts(moe.intermediate, moe.expert_size(), {}));
  }

  Modules& modules_;
  std::string prefix_;
  const DecoderConfig& config_;
  bool required_ = true;  // False while modules are added of which a checkpoint has one form.
};

}  // namespace

void add_layer_modules(
    TensorRoster::Modules& modules,
    std::string prefix,
    const DecoderConfig& config,
    const LayerConfig& layer,
    const RosterOptions& options
) {
  ModulesOfLayer(modules, std::move(prefix), config).add(layer, options);
}

}  // namespace saker::models

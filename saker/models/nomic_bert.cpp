// SPDX-License-Identifier: Apache-2.0
// Nomic's BERT (https://arxiv.org/abs/2402.01613): BERT's norms, but rotation instead of learned
// positions, gated MLPs and q, k and v in one tensor. Its configurations have GPT-2's keys or
// BERT's.
#include "saker/base/error.h"
#include "saker/models/decoder_config.h"
#include "saker/models/encoder_config.h"

#include <algorithm>
#include <array>

namespace saker::models {
namespace {

EncoderNames names() {
  return {
      .bodies = {"bert"},
      .words = "embeddings.word_embeddings",
      .types = "embeddings.token_type_embeddings",
      .input_norm = "emb_ln",
      .layers = "encoder.layers",
      .attention_inputs = {"attn.Wqkv"},
      .attention_output = "attn.out_proj",
      .attention_norm = "norm1",
      .mlp_inputs = {"mlp.fc12", "mlp.fc11"},
      .mlp_output = "mlp.fc2",
      .mlp_norm = "norm2",
  };
}

bool is_unread(std::string_view name, const Json&) {
  constexpr std::array<std::string_view, 3> kScopes{"cls.", "pooler.", "bert.pooler."};
  return std::ranges::any_of(kScopes, [&](std::string_view scope) {
    return name.starts_with(scope);
  });
}

kernels::Activation read_gate(const Json& json) {
  if (!json_has(json, "activation_function")) {
    return read_activation(json, "hidden_act", kernels::Activation::kSilu);
  }
  require_value(json, "activation_function", "swiglu");
  return kernels::Activation::kSilu;
}

nn::RopeOptions read_rope(const Json& json) {
  require_value(json, "rotary_emb_interleaved", false);
  require_value(json, "rotary_emb_scale_base", nullptr);
  require_value(json, "rotary_scaling_factor", nullptr);
  nn::RopeOptions rope =
      nn::read_rope_options(json, {.theta = "rotary_emb_base", .default_theta = 10000.0});
  if (json_has(json, "rotary_emb_fraction")) {
    rope.part = read_positive(json, "rotary_emb_fraction", 1.0);
    require(
        rope.part <= 1.0,
        ErrorCode::kCorruptData,
        "[config] rotary_emb_fraction is {}, expected at most 1",
        rope.part
    );
  }
  return rope;
}

EncoderConfig read(const Json& json) {
  const auto key = [&](std::string_view own, std::string_view other) {
    return json_has(json, own) ? own : other;
  };
  const EncoderKeys keys{
      .hidden = key("n_embd", "hidden_size"),
      .intermediate = key("n_inner", "intermediate_size"),
      .layers = key("n_layer", "num_hidden_layers"),
      .heads = key("n_head", "num_attention_heads"),
      .context = key("n_positions", "max_position_embeddings"),
      .norm_eps = key("layer_norm_epsilon", "layer_norm_eps"),
  };
  for (const auto* flag : {"prenorm", "causal", "parallel_block", "use_rms_norm"}) {
    refuse_flag(json, flag);
  }
  require_value(json, "num_experts", 0);  // Version 2 of the embedding model.
  EncoderConfig config = read_encoder_config(json, keys);
  require_value(json, "head_dim", config.head_dim);
  config.activation = read_gate(json);
  config.gated = true;
  config.type_count = read_type_count(json);
  config.ropes = {read_rope(json)};
  check_rotation(config.ropes.front(), config.head_dim);
  config.names = names();
  return config;
}

}  // namespace

EncoderArchitecture nomic_bert() {
  return {read, {.is_unread = is_unread}};
}

}  // namespace saker::models

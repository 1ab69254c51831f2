// SPDX-License-Identifier: Apache-2.0
// Gemma 4, text: Gemma 3's layers, but norm weights are stored whole. Full layers have larger heads
// than sliding ones, and only a part of a head rotates. In some sizes their values are their keys.
// The last `num_kv_shared_layers` attend to keys and values of the last layer of their kind before
// them. Small sizes give every layer an extra input per token. One size has experts beside the MLP.
#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/models/architecture.h"
#include "saker/models/moe_config.h"
#include "saker/models/tensor_roster.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace saker::models {
namespace {

constexpr std::size_t kSlidingRope = 0;
constexpr std::size_t kFullRope = 1;
constexpr std::int64_t kMaxHeadDim = 1 << 14;
constexpr std::int64_t kMaxSize = 1 << 24;

bool is_unified(const DecoderConfig& config) {
  return config.model_type.starts_with("gemma4_unified");
}

// As in transformers, where the last layer is always full.
bool slides(const Json& json, int layer) {
  const auto pattern = read_size(json, "sliding_window_pattern", 6, kMaxSize);
  return (layer + 1) % pattern != 0 && layer + 1 != json_int(json, "num_hidden_layers", 0);
}

std::vector<bool> sliding_layers(const Json& json, int layers) {
  auto sliding = read_sliding_layers(json, layers, slides);
  require(
      !sliding.back(),
      ErrorCode::kUnsupported,
      "[config] layer_types ends with \"sliding_attention\", expected \"full_attention\""
  );
  return sliding;
}

nn::RopeOptions full_rope(const Json& json) {
  if (json_has(json, "rope_parameters")) {
    return nn::read_rope_options(json, {.default_theta = 1e6});
  }
  nn::RopeOptions options;
  options.kind = nn::RopeKind::kProportional;
  options.theta = 1e6;
  options.part = 0.25;
  return options;
}

// The differences of full layers.
LayerConfig full_layer(const Json& json, const DecoderConfig& config) {
  LayerConfig layer;
  layer.rope = kFullRope;
  layer.head_dim = config.head_dim;
  if (!json.contains("global_head_dim") || json_has(json, "global_head_dim")) {
    layer.head_dim = static_cast<int>(read_size(json, "global_head_dim", 512, kMaxHeadDim));
  }
  require(
      layer.head_dim % 2 == 0 && config.heads * std::int64_t{layer.head_dim} <= kMaxSize,
      ErrorCode::kUnsupported,
      "[config] global_head_dim is {}, expected an even number and at most {} in {} heads",
      layer.head_dim,
      kMaxSize,
      config.heads
  );
  layer.keys_are_values = json_bool(json, "attention_k_eq_v", false);
  if (layer.keys_are_values && json_has(json, "num_global_key_value_heads")) {
    layer.kv_heads =
        static_cast<int>(read_size(json, "num_global_key_value_heads", 0, config.heads));
    require(
        config.heads % layer.kv_heads == 0,
        ErrorCode::kCorruptData,
        "[config] num_attention_heads is {}, expected a multiple of num_global_key_value_heads {}",
        config.heads,
        layer.kv_heads
    );
  }
  return layer;
}

// The last layers use keys and values of the last earlier layer of their kind.
void share_rows(DecoderConfig& config, const Json& json, const std::vector<bool>& sliding) {
  const int layers = static_cast<int>(sliding.size());
  const auto count = json_int(json, "num_kv_shared_layers", 0);
  require(
      count >= 0 && count < layers,
      ErrorCode::kCorruptData,
      "[config] num_kv_shared_layers is {}, expected 0 to {}, less than num_hidden_layers",
      count,
      layers - 1
  );
  const int first = layers - static_cast<int>(count);
  const bool wide = json_bool(json, "use_double_wide_mlp", false);
  for (int i = first; i < layers; ++i) {
    const auto same_kind = [&](int other) {
      return sliding[static_cast<std::size_t>(other)] == sliding[static_cast<std::size_t>(i)];
    };
    int source = first - 1;
    while (source >= 0 && !same_kind(source)) {
      --source;
    }
    require(
        source >= 0,
        ErrorCode::kCorruptData,
        "[config] num_kv_shared_layers is {}, but no layer before them is of the type of layer {}",
        count,
        i
    );
    LayerConfig& layer = config.layers[static_cast<std::size_t>(i)];
    layer.shares_rows_of = source;
    layer.intermediate = wide ? 2 * config.intermediate : config.intermediate;
  }
}

void read_layer_inputs(DecoderConfig& config, const Json& json) {
  constexpr auto kKey = "hidden_size_per_layer_input";
  if (json_has(json, kKey)) {
    config.layer_input_size = static_cast<int>(json_int_in(json, kKey, 0, kMaxSize));
  } else if (!json.contains(kKey) && !is_unified(config)) {
    config.layer_input_size = 256;
  }
  require(
      std::int64_t{config.layer_input_size} * std::ssize(config.layers) <= kMaxSize,
      ErrorCode::kUnsupported,
      "[config] hidden_size_per_layer_input {} of {} layers is above {}",
      config.layer_input_size,
      config.layers.size(),
      kMaxSize
  );
  const auto rows = json_int(json, "vocab_size_per_layer_input", config.vocab_size);
  require(
      config.layer_input_size == 0 || rows == config.vocab_size,
      ErrorCode::kUnsupported,
      "[config] vocab_size_per_layer_input is {}, expected vocab_size {}",
      rows,
      config.vocab_size
  );
}

constexpr nn::MoeNames kExpertNames{
    .router = "router.proj",
    .expert_scales = "router.per_expert_scale",
    .stacks = "experts.switch_glu",
};

void read_experts(DecoderConfig& config, const Json& json) {
  constexpr std::int64_t kMaxExperts = 1 << 14;
  if (!json_bool(json, "enable_moe_block", false)) {
    return;
  }
  nn::MoeOptions& moe = config.moe;
  moe.hidden = config.hidden;
  moe.intermediate = static_cast<int>(json_int_in(json, "moe_intermediate_size", 1, kMaxSize));
  moe.experts = static_cast<int>(json_int_in(json, "num_experts", 1, kMaxExperts));
  moe.routing.chosen = static_cast<int>(json_int_in(json, "top_k_experts", 1, moe.experts));
  moe.routing.score = kernels::RouterScore::kSoftmaxOfChosen;
  moe.activation = config.activation;
  moe.names = kExpertNames;
  config.mlp_beside_experts = true;
  for (LayerConfig& layer : config.layers) {
    layer.experts = true;
  }
}

void refuse_unsupported(const Json& json) {
  const auto bidirectional = json_has(json, "use_bidirectional_attention")
                                 ? json_string(json, "use_bidirectional_attention", "")
                                 : std::string();
  require(
      bidirectional.empty() || bidirectional == "vision",
      ErrorCode::kUnsupported,
      "[config] use_bidirectional_attention is \"{}\", expected null or \"vision\"",
      bidirectional
  );
}

DecoderConfig read(const Json& whole) {
  const auto json = text_config(whole, "gemma4");
  constexpr auto kDefault = kernels::Activation::kGeluTanh;
  auto config = read_decoder_config(
      json,
      {.heads = 8,
       .kv_heads = 4,
       .head_dim = 256,
       .vocab_size = 262144,
       .context_length = 131072,
       .activation = kDefault,
       .rope = {.layer_type = "sliding_attention"}}
  );
  refuse_unsupported(json);
  config.activation = read_activation(json, "hidden_activation", kDefault);
  config.head_norms = true;
  config.value_norms = true;
  config.embedding_scale = std::sqrt(static_cast<float>(config.hidden));
  config.attention_scale = 1.0F;
  config.final_softcap = read_softcap(json, "final_logit_softcapping", 0.0F);
  if (config.head == HeadChoice::kByTensor) {
    config.head = HeadChoice::kTied;
  }
  const int layers = static_cast<int>(config.layers.size());
  const auto sliding = sliding_layers(json, layers);
  const auto full = full_layer(json, config);
  config.ropes.push_back(full_rope(json));
  check_rotation(config.ropes[kFullRope], full.head_dim);
  for (std::size_t i = 0; i < sliding.size(); ++i) {
    config.layers[i] = sliding[i] ? LayerConfig{.rope = kSlidingRope} : full;
  }
  set_windows(config, sliding, read_window(json, is_unified(config) ? 1024 : 512));
  share_rows(config, json, sliding);
  read_layer_inputs(config, json);
  read_experts(config, json);
  return config;
}

// The embedding's scale is rounded to the dtype of its weights.
void adjust(DecoderConfig& config, const nn::Weights& body) {
  const auto table = body / "embed_tokens";
  const auto values = table.has("scales") ? table.find("scales") : table.find("weight");
  const auto rounded = [&](mx::Dtype dtype) {
    const auto scale = mx::astype(mx::array(config.embedding_scale), dtype);
    config.embedding_scale = mx::astype(scale, mx::float32).item<float>();
  };
  if (values && values->dtype == DType::kBFloat16) {
    rounded(mx::bfloat16);
  } else if (values && values->dtype == DType::kFloat16) {
    rounded(mx::float16);
  }
}

nn::DecoderLayer build_layer(const LayerParts& parts) {
  auto layer = sandwich_norm_layer(parts);
  if (parts.config.layer_input_size > 0) {
    layer.input_gate.emplace(parts.weights, parts.config.layer_inputs());
  }
  if (parts.weights.has("layer_scalar")) {
    layer.scale = parts.weights.vector("layer_scalar", 1).item<float>();
  }
  return layer;
}

// Published checkpoints have keys and values of layers that attend to another layer's, and ranges
// of activations seen in training.
bool is_unread(std::string_view name, const Json& config) {
  constexpr std::array<std::string_view, 4> kRanges{
      "input_max", "input_min", "output_max", "output_min"
  };
  constexpr std::array<std::string_view, 3> kRowMakers{
      "self_attn.k_proj.", "self_attn.v_proj.", "self_attn.k_norm."
  };
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (std::ranges::any_of(kRanges, has)) {
    return true;
  }
  const std::string own_name = roster_name(name);
  const auto in_layer = numbered_name(own_name, "layers.");
  if (!in_layer || std::ranges::none_of(kRowMakers, [&](std::string_view part) {
        return in_layer->rest.starts_with(part);
      })) {
    return false;
  }
  const auto found = config.find("text_config");
  const Json& text = found != config.end() && found->is_object() ? *found : config;
  const auto layers = std::max<std::int64_t>(json_int(text, "num_hidden_layers", 0), 0);
  const auto shared =
      std::clamp<std::int64_t>(json_int(text, "num_kv_shared_layers", 0), 0, layers);
  return in_layer->number >= layers - shared;
}

// Routers choose, so they keep 8 bits.
std::optional<kernels::WeightFormat> own_format(std::string_view module) {
  return module.ends_with("router.proj") ? std::optional(kEightBits) : std::nullopt;
}

// All layers of an assistant share rows, but those of another model.
DecoderConfig read_assistant(const Json& config) {
  Json text = text_config(config, "gemma4_text");
  text["num_kv_shared_layers"] = 0;
  text["hidden_size_per_layer_input"] = 0;
  text.erase("vocab_size_per_layer_input");
  refuse_flag(text, "use_double_wide_mlp");
  return read(text);
}

}  // namespace

Architecture gemma4() {
  return {
      .read = read,
      .build_layer = build_layer,
      .adjust = adjust,
      .has_layer_scalars = true,
      .tensors = {.is_unread = is_unread, .experts = kExpertNames, .own_format = own_format},
      .read_assistant = read_assistant,
  };
}

}  // namespace saker::models

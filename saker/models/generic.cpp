// SPDX-License-Identifier: Apache-2.0
// A model with an unknown name, made of a llama's tensors (see detect.h). It is read as a llama.
// Fields that ask for something else are refused, one by one.
#include "saker/base/error.h"
#include "saker/models/architecture.h"

#include <array>
#include <string_view>

namespace saker::models {
namespace {

// Fields of other designs on a llama's tensors, by transformers' names: factors, caps, LayerNorm,
// layers without positions, windows in an unknown order.
constexpr std::array<std::string_view, 20> kForeign{
    "attention_multiplier",
    "attn_logit_softcapping",
    "clip_qkv",
    "dim_model_base",
    "embedding_multiplier",
    "final_logit_softcapping",
    "layer_norm_eps",
    "layer_norm_epsilon",
    "logit_scale",
    "logits_scaling",
    "mup_denominator",
    "no_rope_layer_interval",
    "no_rope_layers",
    "query_pre_attn_scalar",
    "residual_multiplier",
    "rope_interleave",
    "rope_interleaved",
    "scale_depth",
    "scale_emb",
    "use_parallel_residual",
};

// True for null, false and 1, which leave a product or a choice as it is.
bool changes_nothing(const Json& value) {
  return value.is_null() || value == false || value == 1 || value == 1.0;
}

DecoderConfig read(const Json& json) {
  for (const std::string_view key : kForeign) {
    const auto found = json.find(key);
    require(
        found == json.end() || changes_nothing(*found),
        ErrorCode::kUnsupported,
        "[config] {} is given, and nothing is known of how a model of this model_type uses it",
        key
    );
  }
  const bool slides = read_window(json, 0) > 0 && json_bool(json, "use_sliding_window", true);
  require(
      !slides || json.contains("layer_types"),
      ErrorCode::kUnsupported,
      "[config] sliding_window is given without layer_types, so that nothing tells which layers "
      "slide"
  );
  return llama().read(json);
}

}  // namespace

Architecture generic() {
  return {read, pre_norm_layer};
}

}  // namespace saker::models

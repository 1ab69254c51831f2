// SPDX-License-Identifier: Apache-2.0
// ModernBERT (https://arxiv.org/abs/2412.13663): norms before attention and MLP, gated MLPs,
// rotation. Every third layer sees the whole text, the others a window, each kind with its own
// rope. The embedding's norm stands for the first layer's.
#include "saker/base/error.h"
#include "saker/models/decoder_config.h"
#include "saker/models/encoder_config.h"

#include <array>

namespace saker::models {
namespace {

constexpr std::size_t kFullRope = 0;
constexpr std::size_t kSlidingRope = 1;

EncoderNames names() {
  return {
      .bodies = {"model"},
      .words = "embeddings.tok_embeddings",
      .input_norm = "embeddings.norm",
      .layers = "layers",
      .attention_inputs = {"attn.Wqkv"},
      .attention_output = "attn.Wo",
      .attention_norm = "attn_norm",
      .mlp_inputs = {"mlp.Wi"},
      .mlp_output = "mlp.Wo",
      .mlp_norm = "mlp_norm",
      .final_norm = "final_norm",
  };
}

// The heads of the training.
bool is_unread(std::string_view name, const Json&) {
  return name.starts_with("head.") || name.starts_with("decoder.");
}

bool slides(const Json& json, int layer) {
  const auto every = read_size(json, "global_attn_every_n_layers", 3, std::int64_t{1} << 24);
  return layer % every != 0;
}

Pooling class_pooling(const Json& json) {
  const std::string name = json_string(json, "classifier_pooling", "cls");
  require(
      name == "cls" || name == "mean",
      ErrorCode::kUnsupported,
      "[config] classifier_pooling is \"{}\", expected cls or mean",
      name
  );
  return name == "mean" ? Pooling::kMean : Pooling::kCls;
}

EncoderConfig read(const Json& json) {
  constexpr EncoderKeys kKeys{
      .activation = "hidden_activation", .norm_eps = "norm_eps", .default_eps = 1e-5
  };
  EncoderConfig config = read_encoder_config(json, kKeys);
  config.gated = true;
  config.pre_norm = true;
  config.names = names();
  config.ropes = {
      nn::read_rope_options(json, {.theta = "global_rope_theta", .default_theta = 160000.0}),
      nn::read_rope_options(
          json,
          {.layer_type = "sliding_attention",
           .theta = "local_rope_theta",
           .default_theta = 10000.0,
           .scaled = false}
      ),
  };
  for (const nn::RopeOptions& rope : config.ropes) {
    check_rotation(rope, config.head_dim);
  }
  // The tokens up to half of it away, on both sides.
  const auto local = read_size(json, "local_attention", 128, std::int64_t{1} << 24);
  const auto sliding = read_sliding_layers(json, static_cast<int>(config.layers.size()), slides);
  for (std::size_t i = 0; i < sliding.size(); ++i) {
    config.layers[i] = sliding[i]
                           ? EncoderLayerConfig{static_cast<int>(local / 2) + 1, kSlidingRope}
                           : EncoderLayerConfig{0, kFullRope};
  }
  config.classifier = {
      .pooling = class_pooling(json),
      .dense = "head.dense",
      .activation = read_activation(json, "classifier_activation", kernels::Activation::kGelu),
      .norm = "head.norm",
      .norm_eps = config.norm_eps,
      .output = "classifier",
  };
  return config;
}

}  // namespace

EncoderArchitecture modernbert() {
  return {read, {.is_unread = is_unread}};
}

}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
#pragma once

// The common part of decoder configurations, read and checked once. Errors name the field and its
// value. Sizes are limited only to what we can compute with: every tensor is compared with them
// before memory is allocated.

#include "saker/base/json/json.h"
#include "saker/kernels/ops/activation.h"
#include "saker/kernels/storage/kv_store.h"
#include "saker/models/embedding_config.h"
#include "saker/models/layer_config.h"
#include "saker/models/rerank_format.h"
#include "saker/nn/attention.h"
#include "saker/nn/experts/moe.h"
#include "saker/nn/gated_delta_net.h"
#include "saker/nn/gated_mlp.h"
#include "saker/nn/latent/latent_weights.h"
#include "saker/nn/layer_inputs.h"
#include "saker/nn/norm.h"
#include "saker/nn/recurrent/kda.h"
#include "saker/nn/recurrent/mamba2.h"
#include "saker/nn/recurrent/short_convolution.h"
#include "saker/nn/rope_options.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::models {

// An architecture's defaults for missing fields; 0: derived from other fields.
struct ConfigDefaults {
  std::int64_t heads = 0;         // 0: must be given.
  std::int64_t kv_heads = 0;      // 0: as many as heads.
  std::int64_t head_dim = 0;      // 0: hidden_size / heads.
  std::int64_t vocab_size = 0;    // 0: must be given.
  std::int64_t intermediate = 0;  // 0: must be given.
  std::int64_t context_length = 32768;
  kernels::Activation activation = kernels::Activation::kSilu;
  nn::RopeKeys rope = {};
  double norm_eps = 1e-6;
  std::string_view norm_eps_key = "rms_norm_eps";
};

enum class HeadChoice : std::uint8_t {
  kTied,      // The embedding, even if a head tensor exists.
  kUntied,    // A head tensor must exist.
  kByTensor,  // Untied exactly if a head tensor exists.
};

struct DecoderConfig {
  std::string model_type;
  int hidden = 0;
  int intermediate = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int vocab_size = 0;
  std::int64_t context_length = 0;
  HeadChoice head = HeadChoice::kByTensor;
  nn::NormOptions norm;
  kernels::Activation activation = kernels::Activation::kSilu;
  float embedding_scale = 1.0F;
  float attention_scale = 1.0F;
  float attention_softcap = 0.0F;  // 0: none.
  float final_softcap = 0.0F;      // 0: none.
  float residual_scale = 1.0F;     // Scales outputs of attention and MLP.
  PartScales attention_scales;     // Besides.
  PartScales mamba2_scales;
  PartScales mlp_scales;  // The input's is the gate's alone.
  float logit_scale = 1.0F;
  bool head_norms = false;         // RMS norm of each head's q and k.
  bool norms_join_heads = false;   // See nn::AttentionOptions.
  bool norms_follow_rope = false;  // See nn::AttentionOptions.
  bool unit_head_norms = false;    // For heads that rotate, behind the rotation, without weights.
  bool scales_unrotated = false;   // The query scaling is of layers that do not rotate.
  nn::QueryScaling query_scaling;
  DecoderNames names;
  nn::AttentionNames attention_names;
  bool joined_projections = false;  // q, k and v are one tensor; gate and up another.
  bool joined_attention = false;    // q, k and v alone are one tensor.
  bool value_norms = false;         // RMS norm of each head's v, without a weight.
  bool attention_gate = false;      // See nn::AttentionOptions::output_gate.
  std::optional<nn::GateProjection> gate_projection;
  bool attention_sinks = false;  // See nn::AttentionOptions::sinks.
  std::vector<nn::RopeOptions> ropes;
  std::vector<LayerConfig> layers;
  std::optional<nn::LatentOptions> latent;  // For all layers that attend; none: the usual way.
  nn::GatedDeltaOptions delta;              // For layers of each mixing.
  nn::KdaOptions kda;
  nn::ShortConvolutionOptions short_convolution;
  nn::Mamba2Options mamba2;
  nn::MoeOptions moe;                     // For layers with experts.
  bool mlp_beside_experts = false;        // They have an MLP too, see nn::MlpBesideExperts.
  std::string_view feed_forward = "mlp";  // The scope of a layer's MLP or experts.
  // The scope of experts in published checkpoints, where it is another. MLX's models have them in
  // `feed_forward`, with these names.
  std::string_view published_experts = {};
  nn::MoeNames mlx_experts;
  nn::MlpNames mlp_names;
  bool joined_mlp = false;  // Gate and up alone are one tensor.
  // The scope in which MLX's models have an MLP of usual names instead; empty: as published.
  std::string_view mlx_feed_forward = {};
  bool gated_mlp = true;       // See nn::MlpOptions.
  int layer_input_size = 0;    // See nn::LayerInputOptions.
  bool bidirectional = false;  // See ModelInfo.
  EmbeddingConfig embedding;   // Without a section in the file: the architecture's.
  const RerankFormat* rerank = nullptr;

  nn::AttentionOptions attention(int layer) const;
  nn::MlpOptions mlp(int layer) const;
  nn::LayerInputOptions layer_inputs() const;
  // Shape of a layer's cached rows. `dtype`: for rows of 16 bits.
  kernels::KvShape kv_shape(const LayerConfig& layer, int bits, mx::Dtype dtype) const;

  int heads_of(const LayerConfig& layer) const { return layer.heads > 0 ? layer.heads : heads; }

  int head_dim_of(const LayerConfig& layer) const {
    return layer.head_dim > 0 ? layer.head_dim : head_dim;
  }

  // The layers with caches of their own, in the order of a sequence's caches. One with two is there
  // twice, each time with one mixing.
  std::vector<LayerConfig> cached_layers() const;
  // Bytes of a sequence's state in a layer that keeps no rows; 0: it does.
  std::size_t state_bytes(const LayerConfig& layer) const;
  // See ModelInfo.
  int deepest_branch_layer() const;
};

// Fields with the same spelling in all architectures: full attention in every layer, one rope.
DecoderConfig read_decoder_config(const Json& config, const ConfigDefaults& defaults);

// Throws kUnsupported unless the number of rotating elements is even.
void check_rotation(const nn::RopeOptions& rope, int head_dim);

// The text part of a configuration for text and images, else all of it. `model_type` is used if the
// text part has none.
Json text_config(const Json& config, std::string_view model_type);

// A number in [1, high]. If absent: `fallback`, or an error if that is 0.
std::int64_t read_size(
    const Json& config, std::string_view key, std::int64_t fallback, std::int64_t high
);

// One flag per layer: true if it has this type and not full attention. Taken from `layer_types` if
// present, else from `pattern(layer)`.
using LayerPattern = bool (*)(const Json& config, int layer);
std::vector<bool> read_typed_layers(
    const Json& config, int layer_count, std::string_view type, LayerPattern pattern
);
// As above for type "sliding_attention".
std::vector<bool> read_sliding_layers(const Json& config, int layer_count, LayerPattern pattern);

// Sets the window of the flagged layers. Throws kCorruptData if a layer is flagged and `window` is
// 0.
void set_windows(DecoderConfig& config, const std::vector<bool>& sliding, int window);

// Qwen's windows: if `use_sliding_window` is set, layers from `max_window_layers` on slide.
void set_late_windows(DecoderConfig& config, const Json& json);

// The flagged layers keep their rope; the others do not rotate.
void set_rotating_layers(DecoderConfig& config, const std::vector<bool>& rotating);

// `sliding_window`: `fallback` if absent, 0 if null.
int read_window(const Json& config, int fallback);

// An optional positive number: `fallback` if absent, 0 if null.
float read_softcap(const Json& config, std::string_view key, float fallback);

// A positive number; throws kCorruptData otherwise.
double read_positive(const Json& config, std::string_view key, double fallback);

// The activation under `key`, by transformers' names; throws kUnsupported naming an unknown one.
kernels::Activation read_activation(
    const Json& config, std::string_view key, kernels::Activation fallback
);

// Throws kUnsupported if the flag `key` is set.
void refuse_flag(const Json& config, std::string_view key);

}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
#include "saker/models/decoder_config.h"

#include "saker/base/error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace saker::models {
namespace {

// Far above real models, and small enough that a product of two fits in 64 bits.
constexpr std::int64_t kMaxSize = 1 << 24;
constexpr std::int64_t kMaxLayers = 4096;
constexpr std::int64_t kMaxHeads = 1 << 16;
constexpr std::int64_t kMaxHeadDim = 1 << 14;
constexpr std::int64_t kMaxContext = std::int64_t{1} << 40;

HeadChoice read_head_choice(const Json& config) {
  if (!json_has(config, "tie_word_embeddings")) {
    return HeadChoice::kByTensor;
  }
  return json_bool(config, "tie_word_embeddings", false) ? HeadChoice::kTied : HeadChoice::kUntied;
}

void read_heads(const Json& config, const ConfigDefaults& defaults, DecoderConfig& result) {
  const auto heads = read_size(config, "num_attention_heads", defaults.heads, kMaxHeads);
  const auto kv_fallback = defaults.kv_heads > 0 ? defaults.kv_heads : heads;
  const auto kv_heads = read_size(config, "num_key_value_heads", kv_fallback, kMaxHeads);
  require(
      heads % kv_heads == 0,
      ErrorCode::kCorruptData,
      "[config] num_attention_heads is {}, expected a multiple of num_key_value_heads {}",
      heads,
      kv_heads
  );
  std::int64_t head_dim = defaults.head_dim;
  if (json_has(config, "head_dim") || head_dim > 0) {
    head_dim = read_size(config, "head_dim", head_dim, kMaxHeadDim);
  } else {
    require(
        result.hidden % heads == 0,
        ErrorCode::kCorruptData,
        "[config] hidden_size is {}, expected a multiple of num_attention_heads {} or a head_dim",
        result.hidden,
        heads
    );
    head_dim = result.hidden / heads;
  }
  require(
      head_dim % 2 == 0 && head_dim <= kMaxHeadDim,
      ErrorCode::kUnsupported,
      "[config] head_dim is {}, expected an even number of at most {}",
      head_dim,
      kMaxHeadDim
  );
  require(
      heads * head_dim <= kMaxSize,
      ErrorCode::kUnsupported,
      "[config] num_attention_heads {} times head_dim {} is above {}",
      heads,
      head_dim,
      kMaxSize
  );
  result.heads = static_cast<int>(heads);
  result.kv_heads = static_cast<int>(kv_heads);
  result.head_dim = static_cast<int>(head_dim);
}

}  // namespace

std::int64_t read_size(
    const Json& config, std::string_view key, std::int64_t fallback, std::int64_t high
) {
  return fallback > 0 && !json_has(config, key) ? fallback : json_int_in(config, key, 1, high);
}

nn::AttentionOptions DecoderConfig::attention(int layer) const {
  const LayerConfig& own = layers.at(static_cast<std::size_t>(layer));
  nn::AttentionOptions options;
  options.hidden = hidden;
  options.heads = heads_of(own);
  options.kv_heads = own.kv_heads > 0 ? own.kv_heads : kv_heads;
  options.head_dim = head_dim_of(own);
  options.attend.scale = attention_scale;
  options.attend.softcap = attention_softcap;
  options.attend.window = own.window;
  options.attend.bidirectional = bidirectional;
  options.output_gate = attention_gate;
  options.gate = gate_projection;
  options.sinks = attention_sinks;
  options.norms_join_heads = norms_join_heads;
  options.norms_follow_rope = norms_follow_rope;
  options.attend.chunk = own.chunked ? own.window : 0;
  const bool rotates = ropes.at(own.rope).kind != nn::RopeKind::kNone;
  if (!(scales_unrotated && rotates)) {
    options.query_scaling = query_scaling;
  }
  if (unit_head_norms && rotates) {
    options.unit_norm = norm;
  }
  options.joined = joined_projections || joined_attention;
  options.names = attention_names;
  options.keys_are_values = own.keys_are_values;
  if (head_norms) {
    options.head_norm = norm;
  }
  if (value_norms) {
    options.value_norm = norm;
  }
  return options;
}

nn::MlpOptions DecoderConfig::mlp(int layer) const {
  const int own = layers.at(static_cast<std::size_t>(layer)).intermediate;
  return {
      .hidden = hidden,
      .intermediate = own > 0 ? own : intermediate,
      .activation = activation,
      .joined = joined_projections || joined_mlp,
      .gated = gated_mlp,
      .gate_scale = mlp_scales.input,
      .names = mlp_names,
  };
}

nn::LayerInputOptions DecoderConfig::layer_inputs() const {
  return {
      .hidden = hidden,
      .size = layer_input_size,
      .layers = static_cast<int>(layers.size()),
      .vocab_size = vocab_size,
      .norm = norm,
      .activation = activation,
  };
}

kernels::KvShape DecoderConfig::kv_shape(const LayerConfig& layer, int bits, mx::Dtype dtype)
    const {
  if (latent) {
    const bool wide = bits == kernels::kFloat32Bits;
    return {
        .kv_heads = 1,
        .head_dim = latent->row_dim(),
        .value_head_dim = latent->rank,
        .dtype = wide ? mx::float32 : dtype,
        .bits = wide ? kernels::kUnquantizedBits : bits,
        .values_in_keys = true,
    };
  }
  const int dim = head_dim_of(layer);
  const int row_heads = layer.kv_heads > 0 ? layer.kv_heads : kv_heads;
  if (bits == kernels::kFloat32Bits) {
    return {row_heads, dim, dim, mx::float32, kernels::kUnquantizedBits};
  }
  return {row_heads, dim, dim, dtype, bits};
}

std::vector<LayerConfig> DecoderConfig::cached_layers() const {
  std::vector<LayerConfig> cached;
  for (const LayerConfig& layer : layers) {
    for (const TokenMixing mixing : {layer.mixing, layer.beside}) {
      if (mixing != TokenMixing::kNone && !layer.shares_rows_of) {
        cached.push_back(layer);
        cached.back().mixing = mixing;
        cached.back().beside = TokenMixing::kNone;
      }
    }
  }
  return cached;
}

std::size_t DecoderConfig::state_bytes(const LayerConfig& layer) const {
  switch (layer.mixing) {
    case TokenMixing::kGatedDelta:
      return delta.shape.state_bytes();
    case TokenMixing::kKda:
      return kda.shape.state_bytes();
    case TokenMixing::kShortConvolution:
      return short_convolution.state_bytes();
    case TokenMixing::kMamba2:
      return mamba2.shape.state_bytes();
    case TokenMixing::kAttention:
    case TokenMixing::kNone:
      break;
  }
  return 0;
}

int DecoderConfig::deepest_branch_layer() const {
  int last = static_cast<int>(layers.size()) - 1;
  for (const LayerConfig& layer : layers) {
    last = std::min(last, layer.shares_rows_of.value_or(last));
  }
  return last;
}

void check_rotation(const nn::RopeOptions& rope, int head_dim) {
  const int rotated = rope.rotated(head_dim);
  require(
      rotated > 0 && rotated % 2 == 0,
      ErrorCode::kUnsupported,
      "[config] partial_rotary_factor {} of head_dim {} is {}, expected an even number above 0",
      rope.part,
      head_dim,
      rotated
  );
  const auto factors = static_cast<int>(rope.factors.size());
  require(
      rope.kind != nn::RopeKind::kFactors || factors == rotated / 2,
      ErrorCode::kCorruptData,
      "[config] rope has {} factors, expected {} for {} rotated elements of a head",
      factors,
      rotated / 2,
      rotated
  );
}

DecoderConfig read_decoder_config(const Json& config, const ConfigDefaults& defaults) {
  DecoderConfig result;
  result.model_type = json_string(config, "model_type", "");
  result.hidden = static_cast<int>(json_int_in(config, "hidden_size", 1, kMaxSize));
  result.intermediate =
      static_cast<int>(read_size(config, "intermediate_size", defaults.intermediate, kMaxSize));
  result.vocab_size =
      static_cast<int>(read_size(config, "vocab_size", defaults.vocab_size, kMaxSize));
  const auto layer_count = json_int_in(config, "num_hidden_layers", 1, kMaxLayers);
  read_heads(config, defaults, result);
  result.context_length =
      read_size(config, "max_position_embeddings", defaults.context_length, kMaxContext);
  const double eps = json_double(config, defaults.norm_eps_key, defaults.norm_eps);
  require(
      std::isfinite(eps) && eps >= 0.0 && eps <= 1.0,
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected a number in [0, 1]",
      defaults.norm_eps_key,
      eps
  );
  result.norm.eps = static_cast<float>(eps);
  result.head = read_head_choice(config);
  result.activation = read_activation(config, "hidden_act", defaults.activation);
  result.attention_scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(result.head_dim)));
  result.ropes.push_back(nn::read_rope_options(config, defaults.rope));
  check_rotation(result.ropes.front(), result.head_dim);
  result.layers.resize(static_cast<std::size_t>(layer_count));
  return result;
}

Json text_config(const Json& json, std::string_view model_type) {
  const auto found = json.find("text_config");
  if (found == json.end()) {
    return json;
  }
  require(
      found->is_object(),
      ErrorCode::kCorruptData,
      "[config] text_config is {}, expected an object",
      found->type_name()
  );
  Json text = *found;
  text["model_type"] = json_string(json, "model_type", model_type);
  for (const auto* key : {"vocab_size", "tie_word_embeddings"}) {
    if (!text.contains(key) && json.contains(key)) {
      text[key] = json[key];
    }
  }
  return text;
}

std::vector<bool> read_typed_layers(
    const Json& config, int layer_count, std::string_view type, LayerPattern pattern
) {
  std::vector<bool> flags;
  if (!json_has(config, "layer_types")) {
    for (int layer = 0; layer < layer_count; ++layer) {
      flags.push_back(pattern(config, layer));
    }
    return flags;
  }
  const auto& types = *config.find("layer_types");
  require(
      types.is_array() && types.size() == static_cast<std::size_t>(layer_count),
      ErrorCode::kCorruptData,
      "[config] layer_types has {} entries, expected an array of num_hidden_layers {}",
      types.size(),
      layer_count
  );
  for (const auto& entry : types) {
    const auto name = entry.is_string() ? entry.get<std::string>() : std::string();
    require(
        name == type || name == "full_attention",
        ErrorCode::kUnsupported,
        "[config] layer_types has {}, expected \"full_attention\" or \"{}\"",
        entry.dump(-1, ' ', false, Json::error_handler_t::replace),
        type
    );
    flags.push_back(name == type);
  }
  return flags;
}

std::vector<bool> read_sliding_layers(const Json& config, int layer_count, LayerPattern pattern) {
  return read_typed_layers(config, layer_count, "sliding_attention", pattern);
}

void set_windows(DecoderConfig& config, const std::vector<bool>& sliding, int window) {
  for (std::size_t i = 0; i < sliding.size(); ++i) {
    require(
        !sliding[i] || window > 0,
        ErrorCode::kCorruptData,
        "[config] layer {} has sliding attention and sliding_window is not set",
        i
    );
    config.layers.at(i).window = sliding[i] ? window : 0;
  }
}

void set_rotating_layers(DecoderConfig& config, const std::vector<bool>& rotating) {
  const std::size_t none = config.ropes.size();
  config.ropes.push_back({.kind = nn::RopeKind::kNone});
  for (std::size_t i = 0; i < rotating.size(); ++i) {
    if (!rotating[i]) {
      config.layers.at(i).rope = none;
    }
  }
}

void set_late_windows(DecoderConfig& config, const Json& json) {
  const int window = json_bool(json, "use_sliding_window", false) ? read_window(json, 4096) : 0;
  const LayerPattern late = [](const Json& source, int layer) {
    return json_int(source, "max_window_layers", 28) <= layer;
  };
  const LayerPattern never = [](const Json&, int) { return false; };
  const auto layers = static_cast<int>(config.layers.size());
  set_windows(config, read_sliding_layers(json, layers, window > 0 ? late : never), window);
}

int read_window(const Json& config, int fallback) {
  if (!config.contains("sliding_window")) {
    return fallback;
  }
  if (!json_has(config, "sliding_window")) {
    return 0;
  }
  return static_cast<int>(json_int_in(config, "sliding_window", 1, std::numeric_limits<int>::max())
  );
}

float read_softcap(const Json& config, std::string_view key, float fallback) {
  if (config.contains(key) && !json_has(config, key)) {
    return 0.0F;
  }
  return fallback == 0.0F && !config.contains(key)
             ? 0.0F
             : static_cast<float>(read_positive(config, key, fallback));
}

double read_positive(const Json& config, std::string_view key, double fallback) {
  const double value = json_double(config, key, fallback);
  require(
      std::isfinite(value) && value > 1e-6 && value < 1e9,
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected a positive number",
      key,
      value
  );
  return value;
}

kernels::Activation read_activation(
    const Json& config, std::string_view key, kernels::Activation fallback
) {
  if (!json_has(config, key)) {
    return fallback;
  }
  const auto name = json_string(config, key, "");
  if (name == "silu" || name == "swish") {
    return kernels::Activation::kSilu;
  }
  if (name == "gelu" || name == "gelu_python") {
    return kernels::Activation::kGelu;
  }
  constexpr std::array<std::string_view, 5> kTanhNames{
      "gelu_pytorch_tanh", "gelu_python_tanh", "gelu_new", "gelu_fast", "gelu_accurate"
  };
  require(
      std::ranges::find(kTanhNames, std::string_view(name)) != kTanhNames.end(),
      ErrorCode::kUnsupported,
      "[config] {} is \"{}\", expected silu, gelu or gelu_pytorch_tanh",
      key,
      name
  );
  return kernels::Activation::kGeluTanh;
}

void refuse_flag(const Json& config, std::string_view key) {
  require(
      !json_bool(config, key, false),
      ErrorCode::kUnsupported,
      "[config] {} is true, only false can be run",
      key
  );
}

}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
#include "saker/models/encoder_config.h"

#include "saker/base/error.h"
#include "saker/models/decoder_config.h"

#include <cmath>
#include <cstdint>

namespace saker::models {
namespace {

// Far above real models, and small enough that a product of two fits in 64 bits.
constexpr std::int64_t kMaxSize = 1 << 24;
constexpr std::int64_t kMaxLayers = 4096;
constexpr std::int64_t kMaxHeads = 1 << 16;

int read_int(const Json& config, std::string_view key, std::int64_t high) {
  return static_cast<int>(json_int_in(config, key, 1, high));
}

float read_eps(const Json& config, const EncoderKeys& keys) {
  const double eps = json_double(config, keys.norm_eps, keys.default_eps);
  require(
      std::isfinite(eps) && eps >= 0.0 && eps <= 1.0,
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected a number in [0, 1]",
      keys.norm_eps,
      eps
  );
  return static_cast<float>(eps);
}

}  // namespace

EncoderConfig read_encoder_config(const Json& config, const EncoderKeys& keys) {
  EncoderConfig result;
  result.model_type = json_string(config, "model_type", "");
  result.hidden = read_int(config, keys.hidden, kMaxSize);
  result.intermediate = read_int(config, keys.intermediate, kMaxSize);
  result.vocab_size = read_int(config, "vocab_size", kMaxSize);
  result.heads = read_int(config, keys.heads, kMaxHeads);
  result.head_dim = result.hidden / result.heads;
  require(
      result.hidden % result.heads == 0 && result.head_dim % 2 == 0,
      ErrorCode::kUnsupported,
      "[config] {} is {}, expected an even multiple of {} {}",
      keys.hidden,
      result.hidden,
      keys.heads,
      result.heads
  );
  result.context_length = read_int(config, keys.context, kMaxSize);
  result.norm_eps = read_eps(config, keys);
  result.activation = read_activation(config, keys.activation, kernels::Activation::kGelu);
  result.layers.resize(static_cast<std::size_t>(read_int(config, keys.layers, kMaxLayers)));
  result.embedding.pooling = Pooling::kMean;
  return result;
}

int read_type_count(const Json& config) {
  return static_cast<int>(read_size(config, "type_vocab_size", 2, kMaxSize));
}

void require_value(const Json& config, std::string_view key, const Json& expected) {
  require(
      !json_has(config, key) || *config.find(key) == expected,
      ErrorCode::kUnsupported,
      "[config] {} is {}, only {} can be run",
      key,
      describe_json(config.value(key, Json())),
      describe_json(expected)
  );
}

}  // namespace saker::models

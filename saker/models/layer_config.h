// SPDX-License-Identifier: Apache-2.0
#pragma once

// Properties in which a decoder's layers differ, and their names in checkpoints.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace saker::models {

// How a layer mixes tokens.
enum class TokenMixing : std::uint8_t {
  kAttention,
  kGatedDelta,
  kKda,
  kShortConvolution,
  kMamba2,
  kNone
};

// The part of a layer that sees each token alone.
enum class FeedForward : std::uint8_t { kMlp, kNone };

struct LayerConfig {
  TokenMixing mixing = TokenMixing::kAttention;
  // A second way, which reads the same rows and has a cache of its own behind the first one's.
  TokenMixing beside = TokenMixing::kNone;
  FeedForward feed_forward = FeedForward::kMlp;
  int window = 0;        // Sliding window, 0: the whole past.
  bool chunked = false;  // Windows do not slide: each begins at a multiple of its size.
  std::size_t rope = 0;  // Index in DecoderConfig::ropes.
  bool experts = false;  // A mixture of experts instead of one MLP.
  // 0: the decoder's value.
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int intermediate = 0;
  bool keys_are_values = false;  // See nn::AttentionOptions.
  // The cache, of those of the layers that have one, whose keys and values it attends to instead of
  // its own. Layers with such caches come first.
  std::optional<int> shares_rows_of = std::nullopt;
};

// Names of a decoder's norms and of what mixes tokens.
struct DecoderNames {
  std::string_view attention = "self_attn";
  std::string_view gated_delta = "linear_attn";
  std::string_view kda = "self_attn";
  std::string_view short_convolution = "conv";
  std::string_view mamba2 = "mamba";
  // Names of the norms before mixing and before the MLP, in layers of norms before parts only.
  std::array<std::string_view, 2> norms{"input_layernorm", "post_attention_layernorm"};
  // In layers of norms before and after parts, in the order of their use; of norms after parts alone
  // the second and the fourth.
  std::array<std::string_view, 4> outer_norms{
      "input_layernorm",
      "post_attention_layernorm",
      "pre_feedforward_layernorm",
      "post_feedforward_layernorm",
  };
  std::string_view final_norm = "norm";
};

// Factors of the rows that a part of a layer reads, and of its output.
struct PartScales {
  float input = 1.0F;
  float output = 1.0F;
};

}  // namespace saker::models

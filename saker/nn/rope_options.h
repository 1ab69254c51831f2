// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the rotary embedding of a configuration. There are two spellings: `rope_theta` beside
// `rope_scaling`, and the newer `rope_parameters` with `rope_theta` inside, which may hold one
// object per layer type. The kind is `rope_type`, or `type` in old files. Kinds that change with a
// sequence's length are limited to lengths at which they don't (docs/adr/0035-rope-that-grows.md).
// Kinds with three positions (mrope) have three equal ones for text.

#include "saker/base/json/json.h"
#include "saker/kernels/ops/rope.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace saker::nn {

enum class RopeKind : std::uint8_t {
  kDefault,
  kNone,    // No element rotates.
  kLinear,  // All frequencies divided by a factor.
  kLlama3,  // Low frequencies divided, high ones kept, a ramp between.
  kYarn,    // As kLlama3 by another ramp; scales cos and sin (https://arxiv.org/abs/2309.00071).
  kProportional,  // The first pairs of a head rotate, with a whole head's frequencies.
  kFactors,       // Each frequency divided by its own factor.
};

struct RopeOptions {
  RopeKind kind = RopeKind::kDefault;
  double theta = 10000.0;
  double part = 1.0;  // Rotating part of a head's elements (kProportional: pairs).
  double factor = 1.0;
  double original_context = 8192.0;  // Llama 3, YaRN: positions before the extension.
  double low_freq_factor = 1.0;      // Llama 3.
  double high_freq_factor = 4.0;     // Llama 3.
  double beta_fast = 32.0;  // YaRN: rotations in the original context that end and start the ramp.
  double beta_slow = 1.0;
  bool truncate = true;           // YaRN: ramp borders are whole dimensions.
  double attention_factor = 1.0;  // YaRN, factors: multiplies cos and sin.
  double score_factor = 1.0;      // YaRN with mscale_all_dim: multiplies latent attention's scores.
  std::vector<double> factors = {};  // kFactors: one per rotating pair.
  kernels::RopePairs pairs = kernels::RopePairs::kHalves;

  // Number of a head's elements that rotate.
  int rotated(int head_dim) const { return static_cast<int>(head_dim * part); }
};

// The keys to look up for a kind of layer.
struct RopeKeys {
  std::string_view layer_type = "full_attention";  // Key in `rope_parameters` by layer type.
  std::string_view theta = "rope_theta";
  double default_theta = 10000.0;
  double default_part = 1.0;  // See RopeOptions.
  bool partial = false;       // The architecture may rotate a part of a head.
  bool scaled = true;         // A configuration for all layers applies to this one.
};

// Throws kUnsupported for a kind that we can't run and kCorruptData for a value out of range,
// naming the field and the value.
RopeOptions read_rope_options(const Json& config, const RopeKeys& keys);

}  // namespace saker::nn

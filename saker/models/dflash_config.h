// SPDX-License-Identifier: Apache-2.0
#pragma once

// The configuration of a DFlash draft: a few decoder layers that draft a block of tokens from
// hidden states of some target layers (https://arxiv.org/abs/2602.06036). Published files have
// several spellings, all of which we read. Its own numbers are in `dflash_config` or at the root;
// `rope_theta` is at the root, in `rope_parameters` or in `rope_scaling`.

#include "saker/base/json/json.h"
#include "saker/models/decoder_config.h"
#include "saker/models/model.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace saker::models {

// DFlash 2: short convolutions around each layer's parts, and a choice among the best candidates by
// the token before (https://inco.ai/blog/dflash2/).
struct Dflash2Options {
  int conv_taps = 0;         // Tokens that a convolution reads, its own included.
  int conv_group = 0;        // Neighbouring elements with the same dynamic kernel.
  int selector_rank = 0;     // Numbers per token in the codebooks.
  int selector_choices = 0;  // Candidates per position.
};

struct DflashConfig {
  DecoderConfig decoder;     // `head_norms` is set; uses the target's embedding and head.
  std::vector<bool> causal;  // By layer: tokens of a block see no later ones.
  int block_size = 0;        // Tokens of a block: one token and masks for drafted ones.
  std::int32_t mask_token = 0;
  std::vector<int> target_layers;  // Layers whose outputs the draft reads, in this order.
  std::optional<int> target_layer_count;
  float embedding_scale = 1.0F;  // For the target's embeddings.
  float output_multiplier = 1.0F;
  float final_softcap = 0.0F;  // 0: none.
  std::optional<Dflash2Options> second;
};

// True for a configuration of such a draft: it has a mask token, and a block size or target layers.
bool is_dflash_config(const Json& config);

// Throws kUnsupported or kCorruptData naming field and value.
DflashConfig read_dflash_config(const Json& config);

// The target layers that a draft of `tap_count` captured layers reads by default: evenly spaced
// from the second to the third last. REQUIRES: tap_count >= 1, layer_count >= 1.
std::vector<int> default_target_layers(int layer_count, int tap_count);

// Throws kInvalidArgument, naming what does not fit, for a draft of another target.
void check_target(const DflashConfig& config, const ModelInfo& target);

}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
#pragma once

// The configuration of a DFlash draft: a few decoder layers that draft a block of tokens at once
// from what some layers of the target gave (https://arxiv.org/abs/2602.06036). Published files
// spell it in several ways; all of them are read: its own numbers in `dflash_config` or at the
// root, `rope_theta` at the root, in `rope_parameters` or in `rope_scaling`.

#include "saker/base/json.h"
#include "saker/models/decoder_config.h"
#include "saker/models/model.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace saker::models {

// DFlash 2: short convolutions around each layer's parts, and a choice among the best candidates
// that looks at the token before (https://inco.ai/blog/dflash2/).
struct Dflash2Options {
  int conv_taps = 0;         // Rows that a convolution reads, its own among them.
  int conv_group = 0;        // Neighbouring elements with the same dynamic kernel.
  int selector_rank = 0;     // Of the codebooks.
  int selector_choices = 0;  // Candidates of a position.
};

struct DflashConfig {
  DecoderConfig decoder;     // `head_norms` set; no embedding and no head of its own.
  std::vector<bool> causal;  // By layer: rows of a block see no later ones.
  int block_size = 0;        // Rows of a block: a token and masks for those that are drafted.
  std::int32_t mask_token = 0;
  std::vector<int> target_layers;  // Whose output rows the draft reads, in this order.
  std::optional<int> target_layer_count;
  float embedding_scale = 1.0F;  // Of the target's token rows.
  float output_multiplier = 1.0F;
  float final_softcap = 0.0F;  // 0: none.
  std::optional<Dflash2Options> second;
};

// Whether this is such a draft: it has a mask token, and a block size or layers of a target.
bool is_dflash_config(const Json& config);

// Throws kUnsupported or kCorruptData naming field and value.
DflashConfig read_dflash_config(const Json& config);

// The layers that a draft of `tap_count` taps reads where its configuration does not say: evenly
// from the second to the third last. REQUIRES: tap_count >= 1, layer_count >= 1.
std::vector<int> default_target_layers(int layer_count, int tap_count);

// Throws kInvalidArgument, naming what does not fit, for a draft of another target.
void check_target(const DflashConfig& config, const ModelInfo& target);

}  // namespace saker::models

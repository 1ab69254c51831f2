// SPDX-License-Identifier: Apache-2.0
#pragma once

// The configuration of an EAGLE-3 head (https://arxiv.org/abs/2503.01840). Published files have
// three spellings, all of which we read: a flat one of a llama's fields (SafeAILab, SpecForge), the
// same with an `eagle_config` (Model Optimizer), and `transformer_layer_config` in vLLM's
// speculators format.

#include "saker/base/json/json.h"
#include "saker/models/decoder_config.h"
#include "saker/models/model.h"

#include <vector>

namespace saker::models {

struct Eagle3Config {
  DecoderConfig decoder;  // `vocab_size` is the target's.
  int target_hidden = 0;
  int draft_vocab_size = 0;  // Outputs of the head.
  bool reads_layers = true;  // Else it reads the target's final rows, without a `fc`.
  int tap_count = 3;         // Layers of the target that it reads.
  // Their numbers as in nn::ForwardContext; empty: by the target's number of layers.
  std::vector<int> target_layers;
  bool norm_before_fc = false;        // `input_norm` over all taps together.
  bool norm_each_tap = false;         // `fc_norm.N` for each one.
  bool norm_before_residual = false;  // The stream begins with normed rows.
  bool norm_output = false;           // The next step reads normed rows.
};

// True for the configuration of such a head.
bool is_eagle3_config(const Json& config);

// Throws kUnsupported or kCorruptData naming field and value.
Eagle3Config read_eagle3_config(const Json& config);

// The layers whose outputs a head without a list of its own reads: inputs of the target's third
// layer, of its middle one and of its third last. REQUIRES: layer_count >= 1.
std::vector<int> default_eagle3_layers(int layer_count);

// Throws kInvalidArgument, naming what does not fit, for a head of another target.
void check_target(const Eagle3Config& config, const ModelInfo& target);

}  // namespace saker::models

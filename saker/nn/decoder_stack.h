// SPDX-License-Identifier: Apache-2.0
#pragma once

// The layers of a decoder over one residual stream. Each part (attention, MLP) reads the normed
// stream and adds its output to it; the addition is fused with the next norm. Models with
// "sandwich" norms also norm a part's output before the addition. Others add a gated input of the
// layer, or scale the stream after a layer. Captured hidden states are stored here only.

#include "saker/kernels/mx.h"
#include "saker/nn/attention.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/gated_delta_net.h"
#include "saker/nn/gated_mlp.h"
#include "saker/nn/layer_inputs.h"
#include "saker/nn/moe.h"
#include "saker/nn/rms_norm.h"
#include "saker/nn/shared_attention.h"

#include <cstddef>
#include <optional>
#include <variant>
#include <vector>

namespace saker::nn {

using TokenMixer = std::variant<Attention, SharedAttention, GatedDeltaNet>;
using FeedForward = std::variant<GatedMlp, Moe>;

struct DecoderLayer {
  RmsNorm attention_norm;
  TokenMixer attention;
  std::optional<RmsNorm> attention_output_norm;
  RmsNorm mlp_norm;
  FeedForward mlp;
  std::optional<RmsNorm> mlp_output_norm;
  std::optional<LayerInputGate> input_gate = std::nullopt;
  float scale = 1.0F;  // Scales the residual stream after this layer.

  // Bytes that one token reads.
  std::size_t nbytes() const;
};

class DecoderStack {
 public:
  // REQUIRES: at least one layer.
  DecoderStack(std::vector<DecoderLayer> layers, RmsNorm final_norm);

  // Embedded tokens [N, hidden] -> final normed ones [N, hidden]. Fills context.captured; throws
  // kInvalidArgument for layers that do not exist, before anything runs. `layer_inputs` [N, layers,
  // P] if layers have an input gate.
  mx::array operator()(
      const mx::array& embedded,
      ForwardContext& context,
      std::optional<mx::array> layer_inputs = std::nullopt
  ) const;

  std::size_t nbytes() const;

 private:
  std::vector<DecoderLayer> layers_;
  RmsNorm final_norm_;
};

}  // namespace saker::nn

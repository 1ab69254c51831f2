// SPDX-License-Identifier: Apache-2.0
#pragma once

// The layers of a decoder over one residual stream. A layer is a list of residual parts. Each part
// (attention, an MLP) reads the normed stream and adds its output to it; the addition is fused with
// the norm of the part that follows. Captured hidden states are stored here only.

#include "saker/kernels/mx.h"
#include "saker/nn/attention.h"
#include "saker/nn/experts/mlp_beside_experts.h"
#include "saker/nn/experts/moe.h"
#include "saker/nn/forward_context.h"
#include "saker/nn/gated_delta_net.h"
#include "saker/nn/gated_mlp.h"
#include "saker/nn/latent/latent_attention.h"
#include "saker/nn/layer_inputs.h"
#include "saker/nn/norm.h"
#include "saker/nn/recurrent/kda.h"
#include "saker/nn/recurrent/mamba2.h"
#include "saker/nn/recurrent/short_convolution.h"
#include "saker/nn/shared_attention.h"

#include <cstddef>
#include <optional>
#include <variant>
#include <vector>

namespace saker::nn {

// The computation of a part: on tokens together, or on each alone. The first ones, but
// SharedAttention, have a cache in every sequence.
using LayerMixer = std::variant<
    Attention,
    SharedAttention,
    LatentAttention,
    GatedDeltaNet,
    Kda,
    ShortConvolution,
    Mamba2,
    GatedMlp,
    Moe,
    MlpBesideExperts>;

struct ResidualPart {
  std::optional<Norm> norm;  // For the rows that it reads; none: it reads the stream.
  LayerMixer mixer;
  std::optional<Norm> output_norm = std::nullopt;
  float scale = 1.0F;            // Scales the output.
  float input_scale = 1.0F;      // Scales the rows that it reads.
  bool reads_same_rows = false;  // As the part before it; then it has no norm.
};

struct DecoderLayer {
  std::vector<ResidualPart> parts;                          // At least one.
  std::optional<LayerInputGate> input_gate = std::nullopt;  // REQUIRES: the last part's scale is 1.
  float scale = 1.0F;  // Scales the residual stream after this layer.

  // Bytes that one token reads.
  std::size_t nbytes() const;
  // How many of a sequence's caches belong to this layer.
  int cache_count() const;
};

class DecoderStack {
 public:
  // REQUIRES: at least one layer.
  DecoderStack(std::vector<DecoderLayer> layers, Norm final_norm);

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
  // The norm of the rows that a layer reads; null: none. One layer too far: the final norm.
  const Norm* norm_of(std::size_t layer) const;

  std::vector<DecoderLayer> layers_;
  std::vector<int> first_caches_;  // For each layer: a sequence has caches for all parts.
  Norm final_norm_;
};

}  // namespace saker::nn

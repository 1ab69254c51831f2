// SPDX-License-Identifier: Apache-2.0
#pragma once

// The configuration of latent attention (latent_attention.h), and the weights that each of its heads
// has for itself.
//
// Checkpoints have both in `kv_b_proj`, or as MLX does in `embed_q` (transposed) and `unembed_out`.

#include "saker/kernels/ops/attend.h"
#include "saker/kernels/ops/experts/expert_linear.h"
#include "saker/nn/norm.h"
#include "saker/nn/query_scaling.h"
#include "saker/nn/weights/weights.h"

#include <string_view>

namespace saker::nn {

struct LatentOptions {
  int hidden = 0;
  int heads = 0;
  int query_rank = 0;  // Elements of the queries' latent; 0: they have none.
  int rank = 0;        // Elements of the latent.
  int plain_dim = 0;   // Elements of a head's query and key that do not rotate,
  int rope_dim = 0;    // and that do.
  int value_dim = 0;
  NormOptions norm;  // For latents.
  kernels::AttendOptions attend;
  QueryScaling query_scaling = {};
  std::string_view output = "o_proj";  // The output projection's name.
  bool head_gate = false;              // sigmoid(g_proj(x)) scales each head's result.

  int row_dim() const { return rank + rope_dim; }  // Elements of a cached row.
};

struct LatentWeights {
  kernels::ExpertWeights to_latent;    // By head [rank, plain_dim].
  kernels::ExpertWeights from_latent;  // By head [value_dim, rank].
};

// Weights keep their format, except the keys' part of a quantized `kv_b_proj`: it is transposed, as
// floats of 16 bits or those of its scales.
// Throws kCorruptData naming the tensor for other shapes.
LatentWeights latent_weights(const Weights& weights, const LatentOptions& options);

}  // namespace saker::nn

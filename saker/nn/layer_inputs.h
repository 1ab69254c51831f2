// SPDX-License-Identifier: Apache-2.0
#pragma once

// Extra inputs of each layer, computed from the tokens (Gemma 4's per-layer embeddings). A second
// table holds P numbers per token and layer; a projection of the token's embedding is added. In
// each layer the residual stream gates its inputs. Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/activation.h"
#include "saker/nn/embedding.h"
#include "saker/nn/linear.h"
#include "saker/nn/norm.h"
#include "saker/nn/row_context.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>

namespace saker::nn {

struct LayerInputOptions {
  int hidden = 0;
  int size = 0;  // P; 0: there are none.
  int layers = 0;
  int vocab_size = 0;  // Rows of the table.
  NormOptions norm;
  kernels::Activation activation = kernels::Activation::kGeluTanh;
};

// The inputs of all layers.
class LayerInputs {
 public:
  // `weights`: the decoder's scope.
  LayerInputs(const Weights& weights, const LayerInputOptions& options);

  // ids int32 [N] and their embeddings [N, hidden] -> [N, layers, P]
  mx::array operator()(const mx::array& ids, const mx::array& embedded, const RowContext& adapters)
      const;

  // Bytes that one token reads, without the table.
  std::size_t nbytes() const { return projection_.nbytes(); }

 private:
  LayerInputOptions options_;
  Embedding table_;
  Linear projection_;
  Norm norm_;
};

// Computes what one layer adds to its residual stream.
class LayerInputGate {
 public:
  // `weights`: the layer's scope.
  LayerInputGate(const Weights& weights, const LayerInputOptions& options);

  // x [N, hidden], the layer's inputs [N, 1, P] -> [N, hidden]
  mx::array operator()(const mx::array& x, const mx::array& inputs, const RowContext& adapters)
      const;

  std::size_t nbytes() const { return gate_.nbytes() + projection_.nbytes(); }

 private:
  kernels::Activation activation_;
  Linear gate_;
  Linear projection_;
  Norm norm_;
};

}  // namespace saker::nn

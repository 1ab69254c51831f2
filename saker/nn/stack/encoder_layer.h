// SPDX-License-Identifier: Apache-2.0
#pragma once

// A layer of an encoder: attention of all tokens of a text to each other, then an MLP, gated or
// not. Each part adds its output to the residual stream, and a layer norm follows. Post-norm layers
// (BERT) continue with the norm as their stream, pre-norm layers (ModernBERT) with the sum.
// Immutable.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/activation.h"
#include "saker/kernels/ops/attend.h"
#include "saker/kernels/ops/norm.h"
#include "saker/nn/linear.h"
#include "saker/nn/norm.h"
#include "saker/nn/rope.h"
#include "saker/nn/row_context.h"
#include "saker/nn/weights/weights.h"

#include <cstddef>
#include <vector>

namespace saker::nn {

using LinearParts = std::vector<MergedLinear::Part>;

struct EncoderAttentionOptions {
  int hidden = 0;
  int heads = 0;
  int head_dim = 0;
  kernels::AttendOptions attend;
};

class EncoderAttention {
 public:
  // `inputs` make q, k and v side by side, in one part or three.
  EncoderAttention(
      const LinearParts& inputs, const Weights& output, const EncoderAttentionOptions& options
  );

  // x [N, hidden] -> [N, hidden]. Overwrites the rows of the spans, which are whole texts.
  mx::array operator()(
      const mx::array& x,
      const std::vector<kernels::AttendSpan>& spans,
      const RopeTable& rope,
      const RowContext& adapters
  ) const;

  std::size_t nbytes() const { return inputs_.nbytes() + output_.nbytes(); }

 private:
  EncoderAttentionOptions options_;
  MergedLinear inputs_;
  Linear output_;
};

struct EncoderMlpOptions {
  int hidden = 0;
  int intermediate = 0;
  kernels::Activation activation = kernels::Activation::kGelu;
  bool gated = false;
};

class EncoderMlp {
 public:
  // `inputs` have `intermediate` outputs, or gates and then ups.
  EncoderMlp(const LinearParts& inputs, const Weights& output, const EncoderMlpOptions& options);

  // x [N, hidden] -> [N, hidden]
  mx::array operator()(const mx::array& x, const RowContext& adapters) const;

  std::size_t nbytes() const { return inputs_.nbytes() + output_.nbytes(); }

 private:
  EncoderMlpOptions options_;
  MergedLinear inputs_;
  Linear output_;
};

struct EncoderLayer {
  EncoderAttention attention;
  Norm after_attention;
  EncoderMlp mlp;
  Norm after_mlp;  // Pre-norm: the next layer's first norm, or the final one.
  bool pre_norm = false;

  // `state`: the residual stream [N, hidden], and what attention reads.
  kernels::ResidualNorm operator()(
      const kernels::ResidualNorm& state,
      const std::vector<kernels::AttendSpan>& spans,
      const RopeTable& rope,
      const RowContext& adapters
  ) const;

  std::size_t nbytes() const { return attention.nbytes() + mlp.nbytes(); }
};

}  // namespace saker::nn

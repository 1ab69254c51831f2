// SPDX-License-Identifier: Apache-2.0
#pragma once

// The gated delta rule inside an operation's task (see gated_delta.h). Only this folder includes it.

#include "saker/kernels/cpu/dispatch/delta_bodies.h"
#include "saker/kernels/cpu/dispatch/head_rows.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/ops/recurrent/convolved_spans.h"
#include "saker/kernels/ops/recurrent/gated_delta.h"

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace saker::kernels {

inline constexpr std::size_t kDeltaStateArrays = 2;
inline constexpr float kDeltaNormEps = 1e-6F;  // Added to the sum of squares of a head of q or k.

// A span, and pointers to its state.
struct DeltaSpanTask {
  int first_row;
  int row_count;
  const float* inputs_from;
  const float* memory_from;
  float* inputs_to;
  float* memory_to;
};

// A pass's rows, float32 with dense elements.
struct DeltaRows {
  HeadRows x;  // [N, C]
  HeadRows a;  // [N, value_heads]
  HeadRows b;  // [N, value_heads]
};

// Throws kInternal unless the spans follow each other, cover all rows and have states of this shape.
void check_delta(
    const DeltaInputs& inputs, const DeltaShape& shape, const std::vector<DeltaSpan>& spans
);

struct DeltaTask {
  const DeltaBodies* bodies;
  DeltaShape shape;
  std::vector<DeltaSpanTask> spans;
  int row_count;
  const float* convolution;
  const float* decay_rate;
  const float* step_bias;

  // On the bodies in use. `weights` and `states`, two arrays per span, have their values.
  // `results`: the states' arrays to write.
  DeltaTask(
      const DeltaShape& of,
      const SpanRows& rows,
      int count,
      std::span<const mx::array> weights,
      std::span<const mx::array> states,
      std::span<mx::array> results
  );

  // Writes out [N, outputs] and the states. `after` is called for each head of a span on the thread
  // that has computed it.
  void operator()(
      const DeltaRows& rows,
      float* out,
      const std::function<void(const DeltaSpanTask& span, int head)>& after = nullptr
  ) const;

 private:
  const float* input_row(const DeltaSpanTask& span, const HeadRows& x, int index) const;
  void convolve(const DeltaSpanTask& span, const HeadRows& x, float* mixed) const;
  void keep_inputs(const DeltaSpanTask& span, const HeadRows& x) const;
  void open_gates(const DeltaRows& rows, float* decay, float* beta) const;
  void run_head(
      const DeltaSpanTask& span,
      int head,
      const float* mixed,
      const float* decay,
      const float* beta,
      float* out
  ) const;
};

}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Code of operations with a causal convolution: spans that keep their last rows, the convolution
// on CPU, and the one of plain MLX operations.

#include "saker/kernels/cpu/dispatch/delta_bodies.h"
#include "saker/kernels/cpu/dispatch/head_rows.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/ops/recurrent/recurrent_span.h"

#include <string_view>
#include <utility>
#include <vector>

namespace saker::kernels {

// A span, and pointers to its state: the arrays before and after it.
struct SpanArrays {
  int first_row = 0;
  int row_count = 0;
  std::vector<const float*> from;  // The first one: the kept rows [taps - 1, C].
  std::vector<float*> to;
};

// First row and number of rows of each span.
using SpanRows = std::vector<std::pair<int, int>>;

// The spans of an operation whose inputs end with the states' arrays, `arrays` per span, and whose
// outputs end with the states after them.
std::vector<SpanArrays> span_arrays(
    const SpanRows& spans,
    std::size_t arrays,
    const std::vector<mx::array>& inputs,
    std::vector<mx::array>& outputs
);

// Runs an operation over these spans. `inputs`, then the states' arrays; the result's rows are of
// `shape`.
template <typename Run>
RecurrentResult run_spans(
    const std::vector<RecurrentSpan>& spans, std::vector<mx::array> inputs, mx::Shape shape, Run run
) {
  SpanRows rows;
  std::vector<mx::Shape> shapes = {std::move(shape)};
  for (const RecurrentSpan& span : spans) {
    rows.emplace_back(span.first_row, span.row_count);
    for (const mx::array& array : span.state) {
      inputs.push_back(array);
      shapes.push_back(array.shape());
    }
  }
  const std::vector<mx::array> outputs = run(std::move(rows), shapes, inputs);
  RecurrentResult result{outputs.front(), {}};
  std::size_t next = 1;
  for (const RecurrentSpan& span : spans) {
    StateArrays& state = result.states.emplace_back();
    for (std::size_t i = 0; i < span.state.size(); ++i) {
      state.push_back(outputs[next++]);
    }
  }
  return result;
}

// Convolves rows of `channels` floats.
struct SpanConvolution {
  const DeltaBodies* bodies;
  const float* weights;  // [taps][channels]
  const float* bias;     // Null: none.
  int taps;
  int channels;
  bool activated;

  // Row `index` of the span; negative: from the kept rows.
  const float* input_row(const SpanArrays& span, const HeadRows& x, int index) const;
  // The span's rows into those of `out` [N, channels].
  void run(const SpanArrays& span, const HeadRows& x, float* out) const;
  // Keeps the span's last rows.
  void keep(const SpanArrays& span, const HeadRows& x) const;
};

// Throws kInternal, naming `what`, unless the spans follow each other, cover `rows` rows and have
// states of these shapes.
void check_spans(
    std::string_view what,
    const std::vector<RecurrentSpan>& spans,
    int rows,
    const std::vector<mx::Shape>& state
);

// [T, C] of plain MLX operations, and the rows that are kept after them.
struct ConvolvedReference {
  mx::array rows;
  mx::array kept;
};

ConvolvedReference convolved_reference(
    const mx::array& rows, const mx::array& kept, const ConvolutionWeights& weights, bool activated
);

}  // namespace saker::kernels

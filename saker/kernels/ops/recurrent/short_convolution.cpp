// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/recurrent/short_convolution.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/runtime/aligned_bytes.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/recurrent/convolved_spans.h"
#include "saker/kernels/ops/strided_rows.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace saker::kernels {
namespace {

// Calls function(row, first, count) for pieces of all rows.
template <typename Function>
void each_piece(int rows, int channels, Function function) {
  constexpr int kPiece = 1024;
  const int pieces = (channels + kPiece - 1) / kPiece;
  each_row(rows * pieces, 3L * kPiece, [&](int index) {
    const int first = index % pieces * kPiece;
    function(index / pieces, first, std::min(kPiece, channels - first));
  });
}

// The task that runs on the stream's thread.
struct ShortConvolutionTask {
  SpanConvolution convolution;
  std::vector<SpanArrays> spans;
  int row_count;
  StridedRows rows;
  float* out;

  void operator()() {
    const HeadRows x = rows.resolve();
    const int channels = convolution.channels;
    // The stream's thread keeps this memory, so that passes do not fault in fresh pages each time.
    thread_local AlignedBytes memory;
    memory.reserve(
        static_cast<std::size_t>(row_count) * static_cast<std::size_t>(channels) * sizeof(float)
    );
    auto* const gated = reinterpret_cast<float*>(memory.data());
    each_piece(row_count, channels, [&](int row, int first, int count) {
      const float* b = StridedRows::at(x, row, 0) + first;
      const float* value = b + std::ptrdiff_t{2} * channels;
      float* to = gated + std::ptrdiff_t{row} * channels + first;
      for (int i = 0; i < count; ++i) {
        to[i] = b[i] * value[i];
      }
    });
    const HeadRows inputs{.data = gated, .row_stride = channels};
    for (const SpanArrays& span : spans) {
      convolution.run(span, inputs, out);
      convolution.keep(span, inputs);
    }
    each_piece(row_count, channels, [&](int row, int first, int count) {
      const float* c = StridedRows::at(x, row, 0) + channels + first;
      float* to = out + std::ptrdiff_t{row} * channels + first;
      for (int i = 0; i < count; ++i) {
        to[i] *= c[i];
      }
    });
  }
};

// Inputs: rows, taps, a bias if there is one, then the states. Outputs: y, then the states.
struct ShortConvolutionBody {
  const DeltaBodies* bodies;
  bool has_bias;
  SpanRows spans;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return ShortConvolutionTask{
        .convolution =
            {.bodies = bodies,
             .weights = inputs[1].data<float>(),
             .bias = has_bias ? inputs[2].data<float>() : nullptr,
             .taps = inputs[1].shape(0),
             .channels = inputs[1].shape(1),
             .activated = false},
        .spans = span_arrays(spans, 1, inputs, outputs),
        .row_count = inputs[0].shape(0),
        .rows = StridedRows(inputs[0]),
        .out = outputs[0].data<float>(),
    };
  }
};

void check_convolution(
    const mx::array& rows,
    const ConvolutionWeights& weights,
    const std::vector<RecurrentSpan>& spans
) {
  const int taps = weights.taps.shape(0);
  const int channels = weights.taps.shape(1);
  require(
      taps >= 1 && taps <= kMaxConvolutionTaps && rows.ndim() == 2 && rows.shape(1) == 3 * channels,
      ErrorCode::kInternal,
      "[short_convolution] rows of {} elements for {} channels",
      rows.size(),
      channels
  );
  check_spans("short_convolution", spans, rows.shape(0), {{taps - 1, channels}});
}

}  // namespace

StateArrays empty_convolution_state(int taps, int channels) {
  return {mx::zeros({taps - 1, channels}, mx::float32)};
}

RecurrentResult short_convolution(
    const mx::array& rows,
    const ConvolutionWeights& weights,
    const std::vector<RecurrentSpan>& spans
) {
  check_convolution(rows, weights, spans);
  if (!on_cpu()) {
    return short_convolution_reference(rows, weights, spans);
  }
  std::vector<mx::array> inputs = {mx::astype(rows, mx::float32), weights.taps};
  if (weights.bias) {
    inputs.push_back(*weights.bias);
  }
  return run_spans(
      spans,
      std::move(inputs),
      {rows.shape(0), weights.taps.shape(1)},
      [&](SpanRows span_rows, const auto& shapes, const auto& arrays) {
        return cpu_operation(
            "SakerShortConvolution",
            shapes,
            arrays,
            ShortConvolutionBody{
                kernel_table().delta, weights.bias.has_value(), std::move(span_rows)
            }
        );
      }
  );
}

RecurrentResult short_convolution_reference(
    const mx::array& rows,
    const ConvolutionWeights& weights,
    const std::vector<RecurrentSpan>& spans
) {
  check_convolution(rows, weights, spans);
  const int channels = weights.taps.shape(1);
  const auto all = mx::astype(rows, mx::float32);
  std::vector<mx::array> outputs;
  RecurrentResult result{mx::array(0.0F), {}};
  for (const RecurrentSpan& span : spans) {
    const int end = span.first_row + span.row_count;
    const auto part = [&](int index) {
      return mx::slice(all, {span.first_row, index * channels}, {end, (index + 1) * channels});
    };
    auto convolved =
        convolved_reference(part(0) * part(2), span.state.front(), weights, /*activated=*/false);
    outputs.push_back(part(1) * convolved.rows);
    result.states.push_back({std::move(convolved.kept)});
  }
  result.rows = mx::astype(mx::concatenate(outputs, 0), rows.dtype());
  return result;
}

}  // namespace saker::kernels

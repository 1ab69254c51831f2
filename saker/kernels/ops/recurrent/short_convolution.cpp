// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/recurrent/short_convolution.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/runtime/aligned_bytes.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/linear_task.h"
#include "saker/kernels/ops/norm_stage.h"
#include "saker/kernels/ops/recurrent/convolved_spans.h"
#include "saker/kernels/ops/strided_rows.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

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

  // Rows x [N, 3 C] -> out [N, C].
  void operator()(const HeadRows& x, float* out) const {
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

// The task of an operation whose inputs have the weights from number `first` on and end with the
// states.
ShortConvolutionTask task_of(
    std::size_t first,
    bool has_bias,
    const SpanRows& spans,
    const std::vector<mx::array>& inputs,
    std::vector<mx::array>& outputs
) {
  const mx::array& taps = inputs[first];
  return {
      .convolution =
          {.bodies = kernel_table().delta,
           .weights = taps.data<float>(),
           .bias = has_bias ? inputs[first + 1].data<float>() : nullptr,
           .taps = taps.shape(0),
           .channels = taps.shape(1),
           .activated = false},
      .spans = span_arrays(spans, 1, inputs, outputs),
      .row_count = spans.back().first + spans.back().second,
  };
}

// Inputs: rows, taps, a bias if there is one, then the states. Outputs: y, then the states.
struct ShortConvolutionBody {
  bool has_bias;
  SpanRows spans;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return [task = task_of(1, has_bias, spans, inputs, outputs),
            rows = StridedRows(inputs[0]),
            out = outputs[0].data<float>()]() mutable { task(rows.resolve(), out); };
  }
};

// Inputs: those of norm_inputs(), x, taps, a bias if there is one, the biases of both projections if
// any, then the states. Outputs: sum, normed, then the states.
struct ConvolutionBlockBody {
  LinearTask input;
  LinearTask output;
  bool has_bias;
  bool has_input_bias;
  bool has_output_bias;
  SpanRows spans;
  NormStage stage;

  auto operator()(const std::vector<mx::array>& arrays, std::vector<mx::array>& outputs) const {
    const std::size_t first_bias = has_bias ? 5 : 4;
    const std::size_t last_bias = first_bias + (has_input_bias ? 1U : 0U);
    return [task = task_of(3, has_bias, spans, arrays, outputs),
            input = input,
            output = output,
            stage = stage,
            x = input_rows(arrays[2]),
            input_bias = has_input_bias ? arrays[first_bias].data<float>() : nullptr,
            output_bias = has_output_bias ? arrays[last_bias].data<float>() : nullptr,
            stream = StridedRows(arrays[0]),
            weight = StridedRows(arrays[1]),
            sum = outputs[0].data<float>(),
            normed = outputs[1].data<float>()]() mutable {
      mx::array rows = memory_for({x.count, input.outputs});
      mx::array convolved = memory_for({x.count, task.convolution.channels});
      auto* const merged = rows.data<float>();
      auto* const to = convolved.data<float>();
      input(x, input_bias, merged);
      task({.data = merged, .row_stride = input.outputs}, to);
      output(InputRows{to, task.convolution.channels, 1, x.count}, output_bias, normed);
      stage(stream, weight, sum, normed);
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
            ShortConvolutionBody{weights.bias.has_value(), std::move(span_rows)}
        );
      }
  );
}

bool runs_convolution_block(
    const mx::array& x, const ConvolutionBlock& block, const NextNorm& next
) {
  return on_cpu() && x.dtype() == mx::float32 && x.size() > 0 && NormStage::runs(next) &&
         is_packed_for_cpu(block.input) && is_packed_for_cpu(block.output);
}

ConvolutionBlockResult convolution_block(
    const mx::array& x, const ConvolutionBlock& block, const NextNorm& next
) {
  check_linear_input(x, block.input);
  const ConvolutionWeights& weights = block.weights;
  check_convolution(result_of({x.shape(0), block.input.outputs()}), weights, block.spans);
  check_linear_input(result_of({x.shape(0), weights.taps.shape(1)}), block.output);
  const mx::Shape shape = {x.shape(0), block.output.outputs()};
  std::vector<mx::array> inputs = norm_inputs("SakerConvolutionBlock", next, shape);
  inputs.insert(inputs.end(), {x, weights.taps});
  if (weights.bias) {
    inputs.push_back(*weights.bias);
  }
  add_bias(inputs, block.input.bias);
  add_bias(inputs, block.output.bias);
  std::optional<mx::array> normed;
  auto result = run_spans(
      block.spans,
      std::move(inputs),
      shape,
      [&](SpanRows rows, std::vector<mx::Shape> shapes, const auto& arrays) {
        shapes.insert(shapes.begin(), shape);
        ConvolutionBlockBody body{
            LinearTask(block.input),
            LinearTask(block.output),
            weights.bias.has_value(),
            block.input.bias.has_value(),
            block.output.bias.has_value(),
            std::move(rows),
            NormStage(next),
        };
        auto outputs = cpu_operation("SakerConvolutionBlock", shapes, arrays, std::move(body));
        normed = outputs[1];
        outputs.erase(outputs.begin() + 1);
        return outputs;
      }
  );
  return {{std::move(result.rows), *normed}, std::move(result.states)};
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

// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/recurrent/selective_scan.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/scan_bodies.h"
#include "saker/kernels/cpu/runtime/aligned_bytes.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/recurrent/convolved_spans.h"
#include "saker/kernels/ops/strided_rows.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace saker::kernels {
namespace {

constexpr std::size_t kScanArrays = 2;

// The task that runs on the stream's thread.
struct ScanTask {
  const DeltaBodies* bodies;
  SpanConvolution convolution;
  ScanShape shape;
  float min_step;
  float max_step;
  std::vector<SpanArrays> spans;
  int row_count;
  StridedRows rows;
  StridedRows steps;
  const float* decay_rate;
  const float* step_bias;
  const float* skip;
  float* out;

  void operator()() {
    const HeadRows x = rows.resolve();
    // The stream's thread keeps this memory, so that passes do not fault in fresh pages each time.
    thread_local AlignedBytes memory;
    const std::size_t count = static_cast<std::size_t>(row_count);
    const std::size_t channels = static_cast<std::size_t>(shape.channels());
    const std::size_t heads = static_cast<std::size_t>(shape.heads);
    memory.reserve(count * (channels + 2 * heads) * sizeof(float));
    auto* const mixed = reinterpret_cast<float*>(memory.data());
    float* const decay = mixed + count * channels;
    float* const step = decay + count * heads;
    for (const SpanArrays& span : spans) {
      convolution.run(span, x, mixed);
      convolution.keep(span, x);
    }
    find_steps(decay, step);
    const int tasks = static_cast<int>(spans.size()) * shape.heads;
    thread_pool().run(tasks, [&](int task) {
      const SpanArrays& span = spans[static_cast<std::size_t>(task / shape.heads)];
      scan_head(span, task % shape.heads, mixed, decay, step);
    });
  }

 private:
  void find_steps(float* decay, float* step) {
    const HeadRows given = steps.resolve();
    constexpr std::int64_t kCost = 64;  // For a head, in floats read.
    each_row(row_count, kCost * shape.heads, [&](int row) {
      for (int head = 0; head < shape.heads; ++head) {
        const double x = double{StridedRows::at(given, row, 0)[head]} + step_bias[head];
        const double soft = std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
        const double own = std::clamp(soft, double{min_step}, double{max_step});
        const std::ptrdiff_t at = std::ptrdiff_t{row} * shape.heads + head;
        step[at] = static_cast<float>(own);
        decay[at] = static_cast<float>(std::exp(-double{decay_rate[head]} * own));
      }
    });
  }

  void scan_head(
      const SpanArrays& span, int head, const float* mixed, const float* decay, const float* step
  ) const {
    // Kept by each thread of the pool, as above.
    thread_local AlignedBytes scratch;
    scratch.reserve(static_cast<std::size_t>(shape.state_dim) * kScanColumns * sizeof(float));
    const int group = head / (shape.heads / shape.groups);
    const std::ptrdiff_t state = std::ptrdiff_t{head} * shape.state_dim * shape.head_dim;
    const std::ptrdiff_t first = span.first_row;
    const float* row = mixed + first * shape.channels();
    const float* b = row + shape.outputs() + std::ptrdiff_t{group} * shape.state_dim;
    bodies->scan_head({
        .from = span.from[1] + state,
        .to = span.to[1] + state,
        .scratch = reinterpret_cast<float*>(scratch.data()),
        .state_dim = shape.state_dim,
        .head_dim = shape.head_dim,
        .rows = span.row_count,
        .x = row + std::ptrdiff_t{head} * shape.head_dim,
        .b = b,
        .c = b + std::ptrdiff_t{shape.groups} * shape.state_dim,
        .stride = shape.channels(),
        .decay = decay + first * shape.heads + head,
        .step = step + first * shape.heads + head,
        .step_stride = shape.heads,
        .skip = skip[head],
        .out = out + first * shape.outputs() + std::ptrdiff_t{head} * shape.head_dim,
        .out_stride = shape.outputs(),
    });
  }
};

// Inputs: rows, steps, decay_rate, step_bias, skip, taps, a bias if there is one, then the states.
// Outputs: y, then the states.
struct ScanBody {
  const DeltaBodies* bodies;
  ScanShape shape;
  float min_step;
  float max_step;
  bool has_bias;
  SpanRows spans;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    return ScanTask{
        .bodies = bodies,
        .convolution =
            {.bodies = bodies,
             .weights = inputs[5].data<float>(),
             .bias = has_bias ? inputs[6].data<float>() : nullptr,
             .taps = shape.taps,
             .channels = shape.channels(),
             .activated = true},
        .shape = shape,
        .min_step = min_step,
        .max_step = max_step,
        .spans = span_arrays(spans, kScanArrays, inputs, outputs),
        .row_count = inputs[0].shape(0),
        .rows = StridedRows(inputs[0]),
        .steps = StridedRows(inputs[1]),
        .decay_rate = inputs[2].data<float>(),
        .step_bias = inputs[3].data<float>(),
        .skip = inputs[4].data<float>(),
        .out = outputs[0].data<float>(),
    };
  }
};

void check_scan(
    const ScanInputs& inputs, const ScanShape& shape, const std::vector<RecurrentSpan>& spans
) {
  const int rows = inputs.rows.shape(0);
  require(
      shape.taps >= 1 && shape.taps <= kMaxConvolutionTaps &&
          inputs.rows.shape() == mx::Shape{rows, shape.channels()} &&
          inputs.steps.shape() == mx::Shape{rows, shape.heads},
      ErrorCode::kInternal,
      "[selective_scan] rows of {} elements for {} channels",
      inputs.rows.size(),
      shape.channels()
  );
  check_spans(
      "selective_scan",
      spans,
      rows,
      {{shape.taps - 1, shape.channels()}, {shape.heads, shape.state_dim, shape.head_dim}}
  );
}

// One span of the reference; its rows are y [T, outputs].
RecurrentResult scan_span(
    const mx::array& rows,
    const mx::array& steps,
    const ScanWeights& weights,
    const ScanShape& shape,
    const StateArrays& state
) {
  const int count = rows.shape(0);
  const auto convolved =
      convolved_reference(rows, state[0], weights.convolution, /*activated=*/true);
  const auto heads_of = [&](int first, int heads, int width) {
    const auto part = mx::slice(convolved.rows, {0, first}, {count, first + heads * width});
    return mx::reshape(part, {count, heads, width});
  };
  const int each = shape.heads / shape.groups;
  const auto x = heads_of(0, shape.heads, shape.head_dim);
  const auto b = mx::repeat(heads_of(shape.outputs(), shape.groups, shape.state_dim), each, 1);
  const auto c = mx::repeat(
      heads_of(shape.outputs() + shape.groups * shape.state_dim, shape.groups, shape.state_dim),
      each,
      1
  );
  const auto decay = mx::exp(-weights.decay_rate * steps);
  const auto skip = mx::reshape(weights.skip, {shape.heads, 1});
  auto memory = state[1];
  std::vector<mx::array> outputs;
  outputs.reserve(static_cast<std::size_t>(count));
  for (int row = 0; row < count; ++row) {
    const auto at = [&](const mx::array& values) { return mx::take(values, row, 0); };
    const auto own = at(x);
    const auto news = own * mx::reshape(at(steps), {shape.heads, 1});
    memory = memory * mx::reshape(at(decay), {shape.heads, 1, 1}) +
             mx::expand_dims(at(b), 2) * mx::expand_dims(news, 1);
    outputs.push_back(mx::sum(memory * mx::expand_dims(at(c), 2), 1) + skip * own);
  }
  return {mx::reshape(mx::stack(outputs), {count, shape.outputs()}), {{convolved.kept, memory}}};
}

}  // namespace

StateArrays empty_scan_state(const ScanShape& shape) {
  return {
      mx::zeros({shape.taps - 1, shape.channels()}, mx::float32),
      mx::zeros({shape.heads, shape.state_dim, shape.head_dim}, mx::float32),
  };
}

RecurrentResult selective_scan(
    const ScanInputs& inputs,
    const ScanWeights& weights,
    const ScanShape& shape,
    const std::vector<RecurrentSpan>& spans
) {
  check_scan(inputs, shape, spans);
  if (!on_cpu()) {
    return selective_scan_reference(inputs, weights, shape, spans);
  }
  std::vector<mx::array> arrays = {
      mx::astype(inputs.rows, mx::float32),
      mx::astype(inputs.steps, mx::float32),
      weights.decay_rate,
      weights.step_bias,
      weights.skip,
      weights.convolution.taps,
  };
  const bool has_bias = weights.convolution.bias.has_value();
  if (has_bias) {
    arrays.push_back(*weights.convolution.bias);
  }
  return run_spans(
      spans,
      std::move(arrays),
      {inputs.rows.shape(0), shape.outputs()},
      [&](SpanRows rows, const auto& shapes, const auto& all) {
        return cpu_operation(
            "SakerSelectiveScan",
            shapes,
            all,
            ScanBody{
                kernel_table().delta,
                shape,
                weights.min_step,
                weights.max_step,
                has_bias,
                std::move(rows)
            }
        );
      }
  );
}

RecurrentResult selective_scan_reference(
    const ScanInputs& inputs,
    const ScanWeights& weights,
    const ScanShape& shape,
    const std::vector<RecurrentSpan>& spans
) {
  check_scan(inputs, shape, spans);
  const auto rows = mx::astype(inputs.rows, mx::float32);
  const auto steps = mx::clip(
      mx::logaddexp(mx::astype(inputs.steps, mx::float32) + weights.step_bias, mx::array(0.0F)),
      mx::array(weights.min_step),
      mx::array(weights.max_step)
  );
  std::vector<mx::array> outputs;
  RecurrentResult result{mx::array(0.0F), {}};
  for (const RecurrentSpan& span : spans) {
    const int end = span.first_row + span.row_count;
    const auto cut = [&](const mx::array& x) {
      return mx::slice(x, {span.first_row, 0}, {end, x.shape(1)});
    };
    auto part = scan_span(cut(rows), cut(steps), weights, shape, span.state);
    outputs.push_back(std::move(part.rows));
    result.states.push_back(std::move(part.states.front()));
  }
  result.rows = mx::astype(mx::concatenate(outputs, 0), inputs.rows.dtype());
  return result;
}

}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/recurrent/gated_delta.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/delta_bodies.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/runtime/aligned_bytes.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/strided_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

namespace saker::kernels {
namespace {

constexpr float kNormEps = 1e-6F;
constexpr int kStateArrays = 2;

float logistic(double x) {
  return static_cast<float>(1.0 / (1.0 + std::exp(-x)));
}

double softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

// A span, and pointers to its state.
struct SpanTask {
  int first_row;
  int row_count;
  const float* inputs_from;
  const float* memory_from;
  float* inputs_to;
  float* memory_to;
};

// The task that runs on the stream's thread.
struct DeltaTask {
  const DeltaBodies* bodies;
  DeltaShape shape;
  std::vector<SpanTask> spans;
  int row_count;
  StridedRows rows;
  StridedRows a;
  StridedRows b;
  const float* convolution;
  const float* decay_rate;
  const float* step_bias;
  float* out;
  HeadRows x = {};  // `rows` once they hold their values.

  void operator()() {
    x = rows.resolve();
    // The stream's thread keeps this memory, so that passes do not fault in fresh pages each time.
    thread_local AlignedBytes memory;
    const std::size_t count = static_cast<std::size_t>(row_count);
    const std::size_t channels = static_cast<std::size_t>(shape.channels());
    const std::size_t heads = static_cast<std::size_t>(shape.value_heads);
    memory.reserve(count * (channels + 2 * heads) * sizeof(float));
    auto* const mixed = reinterpret_cast<float*>(memory.data());
    float* const decay = mixed + count * channels;
    float* const beta = decay + count * heads;
    for (const SpanTask& span : spans) {
      convolve(span, mixed);
      keep_inputs(span);
    }
    open_gates(decay, beta);
    const int tasks = static_cast<int>(spans.size()) * shape.value_heads;
    thread_pool().run(tasks, [&](int task) {
      const SpanTask& span = spans[static_cast<std::size_t>(task / shape.value_heads)];
      run_head(span, task % shape.value_heads, mixed, decay, beta);
    });
  }

 private:
  // Row `index` of the sequence, counted from the span's first row. Negative: from the kept inputs.
  const float* input_row(const SpanTask& span, int index) const {
    return index >= 0
               ? StridedRows::at(x, span.first_row + index, 0)
               : span.inputs_from + std::ptrdiff_t{shape.taps - 1 + index} * shape.channels();
  }

  // q, k and v of a span's rows; q and k are normalized.
  void convolve(const SpanTask& span, float* mixed) const {
    const int key_heads = 2 * shape.key_heads;
    const int heads = key_heads + shape.value_heads;
    const float query_scale = 1.0F / std::sqrt(static_cast<float>(shape.key_dim));
    each_row(span.row_count * heads, 8L * shape.key_dim, [&](int index) {
      const int row = index / heads;
      const int head = index % heads;
      const bool key = head < key_heads;
      const int width = key ? shape.key_dim : shape.value_dim;
      const std::ptrdiff_t first = key ? std::ptrdiff_t{head} * width
                                       : std::ptrdiff_t{key_heads} * shape.key_dim +
                                             std::ptrdiff_t{head - key_heads} * width;
      std::array<const float*, kMaxDeltaTaps> taps;
      for (int tap = 0; tap < shape.taps; ++tap) {
        taps.at(static_cast<std::size_t>(tap)) =
            input_row(span, row + tap - shape.taps + 1) + first;
      }
      float* to = mixed + std::ptrdiff_t{span.first_row + row} * shape.channels() + first;
      bodies->convolve({taps.data(), convolution + first, shape.channels(), shape.taps, to}, width);
      if (key) {
        bodies->normalize(to, width, kNormEps, head < shape.key_heads ? query_scale : 1.0F);
      }
    });
  }

  void keep_inputs(const SpanTask& span) const {
    const int kept = shape.taps - 1;
    const std::size_t bytes = static_cast<std::size_t>(shape.channels()) * sizeof(float);
    for (int i = 0; i < kept; ++i) {
      float* to = span.inputs_to + std::ptrdiff_t{i} * shape.channels();
      std::memcpy(to, input_row(span, span.row_count - kept + i), bytes);
    }
  }

  void open_gates(float* decay, float* beta) {
    const HeadRows steps = a.resolve();
    const HeadRows shares = b.resolve();
    for (int row = 0; row < row_count; ++row) {
      for (int head = 0; head < shape.value_heads; ++head) {
        const double step =
            softplus(double{StridedRows::at(steps, row, 0)[head]} + step_bias[head]);
        *decay++ = static_cast<float>(std::exp(-double{decay_rate[head]} * step));
        *beta++ = logistic(StridedRows::at(shares, row, 0)[head]);
      }
    }
  }

  void run_head(
      const SpanTask& span, int head, const float* mixed, const float* decay, const float* beta
  ) const {
    // Kept by each thread of the pool, as above.
    thread_local AlignedBytes scratch;
    scratch.reserve(static_cast<std::size_t>(shape.key_dim) * kDeltaColumns * sizeof(float));
    const int key_head = head / (shape.value_heads / shape.key_heads);
    const std::ptrdiff_t state = std::ptrdiff_t{head} * shape.key_dim * shape.value_dim;
    const std::ptrdiff_t first = span.first_row;
    const float* q = mixed + first * shape.channels() + std::ptrdiff_t{key_head} * shape.key_dim;
    const float* k = q + std::ptrdiff_t{shape.key_heads} * shape.key_dim;
    const float* v = mixed + first * shape.channels() +
                     std::ptrdiff_t{2 * shape.key_heads} * shape.key_dim +
                     std::ptrdiff_t{head} * shape.value_dim;
    bodies->run_head({
        .from = span.memory_from + state,
        .to = span.memory_to + state,
        .scratch = reinterpret_cast<float*>(scratch.data()),
        .key_dim = shape.key_dim,
        .value_dim = shape.value_dim,
        .rows = span.row_count,
        .q = q,
        .k = k,
        .v = v,
        .stride = shape.channels(),
        .decay = decay + first * shape.value_heads + head,
        .beta = beta + first * shape.value_heads + head,
        .gate_stride = shape.value_heads,
        .out = out + first * shape.outputs() + std::ptrdiff_t{head} * shape.value_dim,
        .out_stride = shape.outputs(),
    });
  }
};

// Inputs: rows, a, b, convolution, decay_rate, step_bias, then two per span. Outputs: y, then two
// per span.
struct DeltaBody {
  const DeltaBodies* bodies;
  DeltaShape shape;
  std::vector<std::pair<int, int>> spans;  // First row and count.

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    constexpr std::size_t kFirstState = 6;
    DeltaTask task{
        .bodies = bodies,
        .shape = shape,
        .spans = {},
        .row_count = inputs[0].shape(0),
        .rows = StridedRows(inputs[0]),
        .a = StridedRows(inputs[1]),
        .b = StridedRows(inputs[2]),
        .convolution = inputs[3].data<float>(),
        .decay_rate = inputs[4].data<float>(),
        .step_bias = inputs[5].data<float>(),
        .out = outputs[0].data<float>(),
    };
    for (std::size_t i = 0; i < spans.size(); ++i) {
      task.spans.push_back({
          .first_row = spans[i].first,
          .row_count = spans[i].second,
          .inputs_from = inputs[kFirstState + kStateArrays * i].data<float>(),
          .memory_from = inputs[kFirstState + kStateArrays * i + 1].data<float>(),
          .inputs_to = outputs[1 + kStateArrays * i].data<float>(),
          .memory_to = outputs[2 + kStateArrays * i].data<float>(),
      });
    }
    return task;
  }
};

void check(
    const DeltaInputs& inputs, const DeltaShape& shape, const std::vector<DeltaSpan>& spans
) {
  int rows = 0;
  bool follow = shape.taps >= 1 && shape.taps <= kMaxDeltaTaps;
  for (const DeltaSpan& span : spans) {
    follow =
        follow && span.first_row == rows && span.row_count > 0 &&
        span.state.inputs.shape() == mx::Shape{shape.taps - 1, shape.channels()} &&
        span.state.memory.shape() == mx::Shape{shape.value_heads, shape.key_dim, shape.value_dim};
    rows += span.row_count;
  }
  require(
      follow && inputs.rows.shape() == mx::Shape{rows, shape.channels()} &&
          inputs.a.shape() == mx::Shape{rows, shape.value_heads} &&
          inputs.b.shape() == inputs.a.shape(),
      ErrorCode::kInternal,
      "[gated_delta] spans of {} rows do not fit rows of {} elements",
      rows,
      inputs.rows.size()
  );
}

mx::array columns(const mx::array& x, int first, int count) {
  return mx::slice(x, {0, first}, {x.shape(0), first + count});
}

// x / |x| * scale over the last axis.
mx::array normalized(const mx::array& x, float scale) {
  const auto squares = mx::sum(mx::square(x), -1, true);
  return x * mx::rsqrt(squares + mx::array(kNormEps)) * mx::array(scale);
}

struct GateRows {
  mx::array decay;  // [T, value_heads]
  mx::array beta;
};

// One span of the reference.
DeltaResult reference_span(
    const mx::array& rows,
    const GateRows& gates,
    const DeltaWeights& weights,
    const DeltaShape& shape,
    const DeltaState& state
) {
  const int count = rows.shape(0);
  const auto all = mx::concatenate({state.inputs, rows}, 0);
  auto sum = mx::zeros_like(rows);
  for (int tap = 0; tap < shape.taps; ++tap) {
    const auto weight = mx::slice(weights.convolution, {tap, 0}, {tap + 1, shape.channels()});
    sum = sum + weight * mx::slice(all, {tap, 0}, {tap + count, shape.channels()});
  }
  const auto mixed = sum * mx::sigmoid(sum);
  const int keys = shape.key_heads * shape.key_dim;
  const int repeat = shape.value_heads / shape.key_heads;
  const auto key_rows = [&](int first, float scale) {
    const auto heads =
        mx::reshape(columns(mixed, first, keys), {count, shape.key_heads, shape.key_dim});
    return mx::repeat(normalized(heads, scale), repeat, 1);  // [T, value_heads, key_dim]
  };
  const auto q = key_rows(0, 1.0F / std::sqrt(static_cast<float>(shape.key_dim)));
  const auto k = key_rows(keys, 1.0F);
  const auto v = mx::reshape(
      columns(mixed, 2 * keys, shape.outputs()), {count, shape.value_heads, shape.value_dim}
  );
  auto memory = state.memory;
  std::vector<mx::array> outputs;
  for (int row = 0; row < count; ++row) {
    const auto at = [&](const mx::array& x) { return mx::take(x, row, 0); };
    const auto decay = mx::reshape(at(gates.decay), {shape.value_heads, 1, 1});
    const auto beta = mx::reshape(at(gates.beta), {shape.value_heads, 1});
    const auto key = mx::expand_dims(at(k), 2);  // [value_heads, key_dim, 1]
    memory = memory * decay;
    const auto expected = mx::sum(memory * key, 1);
    const auto news = (at(v) - expected) * beta;
    memory = memory + key * mx::expand_dims(news, 1);
    outputs.push_back(mx::sum(memory * mx::expand_dims(at(q), 2), 1));
  }
  const auto kept = mx::slice(all, {count, 0}, {count + shape.taps - 1, shape.channels()});
  return {mx::reshape(mx::stack(outputs), {count, shape.outputs()}), {{kept, memory}}};
}

}  // namespace

DeltaState empty_delta_state(const DeltaShape& shape) {
  return {
      mx::zeros({shape.taps - 1, shape.channels()}, mx::float32),
      mx::zeros({shape.value_heads, shape.key_dim, shape.value_dim}, mx::float32),
  };
}

DeltaResult gated_delta(
    const DeltaInputs& inputs,
    const DeltaWeights& weights,
    const DeltaShape& shape,
    const std::vector<DeltaSpan>& spans
) {
  check(inputs, shape, spans);
  if (!on_cpu()) {
    return gated_delta_reference(inputs, weights, shape, spans);
  }
  DeltaBody body{kernel_table().delta, shape, {}};
  std::vector<mx::array> arrays = {
      mx::astype(inputs.rows, mx::float32),
      mx::astype(inputs.a, mx::float32),
      mx::astype(inputs.b, mx::float32),
      weights.convolution,
      weights.decay_rate,
      weights.step_bias,
  };
  std::vector<mx::Shape> shapes = {{inputs.rows.shape(0), shape.outputs()}};
  for (const DeltaSpan& span : spans) {
    body.spans.emplace_back(span.first_row, span.row_count);
    arrays.insert(arrays.end(), {span.state.inputs, span.state.memory});
    shapes.insert(shapes.end(), {span.state.inputs.shape(), span.state.memory.shape()});
  }
  const auto outputs = cpu_operation("SakerGatedDelta", shapes, arrays, std::move(body));
  DeltaResult result{outputs[0], {}};
  for (std::size_t i = 0; i < spans.size(); ++i) {
    result.states.push_back({outputs[1 + kStateArrays * i], outputs[2 + kStateArrays * i]});
  }
  return result;
}

DeltaState replay_delta(
    const DeltaInputs& inputs,
    const DeltaWeights& weights,
    const DeltaShape& shape,
    const DeltaSpan& span,
    int count
) {
  const auto cut = [&](const mx::array& x) {
    return mx::slice(x, {span.first_row, 0}, {span.first_row + count, x.shape(1)});
  };
  const DeltaInputs rows{.rows = cut(inputs.rows), .a = cut(inputs.a), .b = cut(inputs.b)};
  return gated_delta(rows, weights, shape, {{0, count, span.state}}).states.front();
}

DeltaResult gated_delta_reference(
    const DeltaInputs& inputs,
    const DeltaWeights& weights,
    const DeltaShape& shape,
    const std::vector<DeltaSpan>& spans
) {
  check(inputs, shape, spans);
  const auto rows = mx::astype(inputs.rows, mx::float32);
  const auto steps = mx::astype(inputs.a, mx::float32) + weights.step_bias;
  const auto decay = mx::exp(-weights.decay_rate * mx::logaddexp(steps, mx::array(0.0F)));
  const auto beta = mx::sigmoid(mx::astype(inputs.b, mx::float32));
  std::vector<mx::array> outputs;
  DeltaResult result{mx::array(0.0F), {}};
  for (const DeltaSpan& span : spans) {
    const int end = span.first_row + span.row_count;
    const auto cut = [&](const mx::array& x) {
      return mx::slice(x, {span.first_row, 0}, {end, x.shape(1)});
    };
    auto part = reference_span(cut(rows), {cut(decay), cut(beta)}, weights, shape, span.state);
    outputs.push_back(std::move(part.rows));
    result.states.push_back(std::move(part.states.front()));
  }
  result.rows = mx::astype(mx::concatenate(outputs, 0), inputs.rows.dtype());
  return result;
}

}  // namespace saker::kernels

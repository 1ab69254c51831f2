// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/recurrent/gated_delta.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/recurrent/delta_task.h"
#include "saker/kernels/ops/strided_rows.h"

#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

namespace saker::kernels {
namespace {

// Inputs: rows, a, b, convolution, decay_rate, step_bias, then two per span. Outputs: y, then two
// per span.
struct DeltaBody {
  DeltaShape shape;
  SpanRows spans;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    const std::span<const mx::array> all(inputs);
    const DeltaTask task(
        shape,
        spans,
        inputs[0].shape(0),
        all.subspan(3, 3),
        all.subspan(6),
        std::span<mx::array>(outputs).subspan(1)
    );
    return [task,
            rows = StridedRows(inputs[0]),
            a = StridedRows(inputs[1]),
            b = StridedRows(inputs[2]),
            out = outputs[0].data<float>()]() mutable {
      task({rows.resolve(), a.resolve(), b.resolve()}, out);
    };
  }
};

mx::array columns(const mx::array& x, int first, int count) {
  return mx::slice(x, {0, first}, {x.shape(0), first + count});
}

// x / |x| * scale over the last axis.
mx::array normalized(const mx::array& x, float scale) {
  const auto squares = mx::sum(mx::square(x), -1, true);
  return x * mx::rsqrt(squares + mx::array(kDeltaNormEps)) * mx::array(scale);
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

void check_delta(
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
  check_delta(inputs, shape, spans);
  if (!on_cpu()) {
    return gated_delta_reference(inputs, weights, shape, spans);
  }
  std::vector<mx::array> arrays = {
      mx::astype(inputs.rows, mx::float32),
      mx::astype(inputs.a, mx::float32),
      mx::astype(inputs.b, mx::float32),
      weights.convolution,
      weights.decay_rate,
      weights.step_bias,
  };
  std::vector<mx::Shape> shapes = {{inputs.rows.shape(0), shape.outputs()}};
  DeltaBody body{shape, {}};
  for (const DeltaSpan& span : spans) {
    body.spans.emplace_back(span.first_row, span.row_count);
    arrays.insert(arrays.end(), {span.state.inputs, span.state.memory});
    shapes.insert(shapes.end(), {span.state.inputs.shape(), span.state.memory.shape()});
  }
  const auto outputs = cpu_operation("SakerGatedDelta", shapes, arrays, std::move(body));
  DeltaResult result{outputs[0], {}};
  for (std::size_t i = 0; i < spans.size(); ++i) {
    result.states.push_back({outputs[1 + kDeltaStateArrays * i], outputs[2 + kDeltaStateArrays * i]}
    );
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
  check_delta(inputs, shape, spans);
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

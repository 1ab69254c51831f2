// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/recurrent/delta_block.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/row_bodies.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/gated_rows.h"
#include "saker/kernels/ops/linear_task.h"
#include "saker/kernels/ops/norm_stage.h"
#include "saker/kernels/ops/recurrent/delta_task.h"
#include "saker/kernels/ops/strided_rows.h"

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

namespace saker::kernels {
namespace {

// The task on a pass's rows, with its inputs resolved.
struct DeltaBlockTask {
  LinearTask inputs;
  LinearTask output;
  const float* input_bias;
  const float* output_bias;
  DeltaTask rule;
  const RowBodies* bodies;
  GatedFunction silu;
  float eps;

  // Results of the output projection [N, outputs].
  void operator()(const InputRows& x, const float* norm, float* out) const {
    const DeltaShape& shape = rule.shape;
    const std::ptrdiff_t stride = inputs.outputs;
    mx::array merged = memory_for({x.count, inputs.outputs});
    mx::array attended = memory_for({x.count, shape.outputs()});
    auto* const rows = merged.data<float>();
    auto* const heads = attended.data<float>();
    inputs(x, input_bias, rows);
    float* const gates = rows + shape.channels();
    const float* const steps = gates + shape.outputs();
    const DeltaRows parts{
        .x = {rows, stride}, .a = {steps + shape.value_heads, stride}, .b = {steps, stride}
    };
    // A head's gated result takes the place of its gates.
    rule(parts, heads, [&](const DeltaSpanTask& span, int head) {
      for (std::ptrdiff_t row = span.first_row; row < span.first_row + span.row_count; ++row) {
        const std::ptrdiff_t first = std::ptrdiff_t{head} * shape.value_dim;
        float* result = heads + row * shape.outputs() + first;
        float* gate = gates + row * stride + first;
        bodies->rms_norm({result, nullptr, norm, nullptr, result}, shape.value_dim, eps);
        silu({gate, result, gate}, shape.value_dim);
      }
    });
    output(InputRows{gates, stride, 1, x.count}, output_bias, out);
  }
};

// Inputs: those of norm_inputs(), x, the rule's three weights, the norm of heads, the states, then the
// biases of both projections if any. Outputs: sum, normed, the states.
struct DeltaBlockBody {
  static constexpr std::size_t kX = 2;
  static constexpr std::size_t kWeights = 3;
  static constexpr std::size_t kHeadNorm = 6;
  static constexpr std::size_t kStates = 7;

  LinearTask inputs;
  LinearTask output;
  bool has_input_bias;
  bool has_output_bias;
  DeltaShape shape;
  SpanRows spans;
  float eps;
  NormStage stage;

  auto operator()(const std::vector<mx::array>& arrays, std::vector<mx::array>& outputs) const {
    const std::span<const mx::array> all(arrays);
    const std::size_t states = kDeltaStateArrays * spans.size();
    const std::span<const mx::array> biases = all.subspan(kStates + states);
    DeltaBlockTask task{
        inputs,
        output,
        has_input_bias ? biases.front().data<float>() : nullptr,
        has_output_bias ? biases.back().data<float>() : nullptr,
        DeltaTask(
            shape,
            spans,
            arrays[kX].shape(0),
            all.subspan(kWeights, 3),
            all.subspan(kStates, states),
            std::span<mx::array>(outputs).subspan(2)
        ),
        kernel_table().rows,
        gated_function(Activation::kSilu),
        eps,
    };
    return [task = std::move(task),
            stage = stage,
            x = input_rows(arrays[kX]),
            head_norm = StridedRows(arrays[kHeadNorm]),
            stream = StridedRows(arrays[0]),
            weight = StridedRows(arrays[1]),
            sum = outputs[0].data<float>(),
            normed = outputs[1].data<float>()]() mutable {
      task(x, head_norm.resolve().data, normed);
      stage(stream, weight, sum, normed);
    };
  }
};

void check(const mx::array& x, const DeltaBlock& block) {
  check_linear_input(x, block.inputs);
  const DeltaShape& shape = block.shape;
  check_linear_input(result_of({x.shape(0), shape.outputs()}), block.output);
  require(
      block.inputs.outputs() == shape.channels() + shape.outputs() + 2 * shape.value_heads &&
          block.norm.shape() == mx::Shape{shape.value_dim},
      ErrorCode::kInternal,
      "[gated_delta] projections to {} columns and a norm of {} do not fit heads of {}",
      block.inputs.outputs(),
      block.norm.size(),
      shape.value_dim
  );
  const mx::array gates = result_of({x.shape(0), shape.value_heads});
  check_delta({result_of({x.shape(0), shape.channels()}), gates, gates}, shape, block.spans);
}

}  // namespace

bool runs_delta_block(const mx::array& x, const DeltaBlock& block, const NextNorm& next) {
  return on_cpu() && x.dtype() == mx::float32 && x.size() > 0 && NormStage::runs(next) &&
         is_packed_for_cpu(block.inputs) && is_packed_for_cpu(block.output);
}

DeltaBlockResult delta_block(const mx::array& x, const DeltaBlock& block, const NextNorm& next) {
  check(x, block);
  const mx::Shape shape = {x.shape(0), block.output.outputs()};
  std::vector<mx::array> inputs = norm_inputs("SakerDeltaBlock", next, shape);
  const DeltaWeights& weights = block.weights;
  inputs.insert(inputs.end(), {x, weights.convolution, weights.decay_rate, weights.step_bias});
  inputs.push_back(mx::astype(block.norm, mx::float32));
  std::vector<mx::Shape> shapes = {shape, shape};
  SpanRows spans;
  for (const DeltaSpan& span : block.spans) {
    spans.emplace_back(span.first_row, span.row_count);
    inputs.insert(inputs.end(), {span.state.inputs, span.state.memory});
    shapes.insert(shapes.end(), {span.state.inputs.shape(), span.state.memory.shape()});
  }
  add_bias(inputs, block.inputs.bias);
  add_bias(inputs, block.output.bias);
  DeltaBlockBody body{
      LinearTask(block.inputs),
      LinearTask(block.output),
      block.inputs.bias.has_value(),
      block.output.bias.has_value(),
      block.shape,
      std::move(spans),
      block.eps,
      NormStage(next),
  };
  const auto outputs = cpu_operation("SakerDeltaBlock", shapes, inputs, std::move(body));
  DeltaBlockResult result{{outputs[0], outputs[1]}, {}};
  for (std::size_t i = 0; i < block.spans.size(); ++i) {
    const std::size_t at = 2 + kDeltaStateArrays * i;
    result.states.push_back({outputs[at], outputs[at + 1]});
  }
  return result;
}

}  // namespace saker::kernels

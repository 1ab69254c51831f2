// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/blocks.h"

#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/ops/attend_paths.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/gated_rows.h"
#include "saker/kernels/ops/linear_task.h"
#include "saker/kernels/ops/merged_attention.h"
#include "saker/kernels/ops/norm_stage.h"
#include "saker/kernels/ops/strided_rows.h"
#include "saker/kernels/storage/packed_storage.h"

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

// The bias at `index`, null without one.
const float* bias_of(std::span<const mx::array> inputs, bool has_bias, std::size_t index) {
  return has_bias ? inputs[index].data<float>() : nullptr;
}

// A block begins with a stage: what computes the rows of its last GEMM. It runs inside the block's
// task, from the first `input_count()` inputs. What it allocates lives until that GEMM is done, so
// all layers reuse the memory.

// The rows are an input.
struct GivenRows {
  std::size_t input_count() const { return 1; }

  TaskRows operator()(std::span<const mx::array> inputs) const { return {inputs[0]}; }
};

// Inputs: x, the bias of gate and up if any.
struct GatedStage {
  LinearTask gate_up;
  bool has_bias;
  GatedFunction function;

  std::size_t input_count() const { return has_bias ? 2 : 1; }

  TaskRows operator()(std::span<const mx::array> inputs) const {
    const int rows = inputs[0].shape(0);
    const int width = gate_up.outputs / 2;
    mx::array merged = memory_for({rows, 2 * width});
    gate_up(input_rows(inputs[0]), bias_of(inputs, has_bias, 1), merged.data<float>());
    // Long prefills are bound by memory bandwidth. If there are enough rows for all threads, the
    // next GEMM computes its rows from gates and ups while it prepares them.
    if (rows > kRowsPreparedAlone * thread_pool().size()) {
      return {result_of({rows, width}), row_producer(std::move(merged), width)};
    }
    mx::array activated = memory_for({rows, width});
    activate(function, {merged.data<float>(), 2 * width, 0}, rows, width, activated.data<float>());
    return {std::move(activated)};
  }

 private:
  RowProducer row_producer(mx::array merged, int width) const {
    return
        [function = function, merged = std::move(merged), width](int first, int count, float* to) {
          const float* gate = merged.data<float>() + std::ptrdiff_t{first} * 2 * width;
          for (int row = 0; row < count; ++row, gate += 2 * width, to += width) {
            function({gate, gate + width, to}, width);
          }
        };
  }
};

// Inputs: x, the bias of q, k and v if any, then those of merged_inputs().
struct AttentionStage {
  LinearTask qkv;
  bool has_bias;
  MergedAttention attention;

  std::size_t input_count() const { return first_of_heads() + attention.input_count(); }

  TaskRows operator()(std::span<const mx::array> inputs) const {
    const int rows = inputs[0].shape(0);
    mx::array attended = memory_for({rows, attention.attended_width()});
    mx::array merged = memory_for({rows, attention.merged_width()});
    qkv(input_rows(inputs[0]), bias_of(inputs, has_bias, 1), merged.data<float>());
    attention.overwrite(
        inputs.subspan(first_of_heads()), merged.data<float>(), rows, attended.data<float>()
    );
    return {std::move(attended)};
  }

 private:
  std::size_t first_of_heads() const { return has_bias ? 2 : 1; }
};

// The stage and the GEMM on its rows. Inputs: the stage's, then the GEMM's bias if any.
template <typename Stage>
struct StagedProduct {
  Stage stage;
  LinearTask output;
  bool has_bias;

  std::size_t input_count() const { return stage.input_count() + (has_bias ? 1 : 0); }

  void operator()(std::span<const mx::array> inputs, float* out) const {
    const std::size_t count = stage.input_count();
    const TaskRows rows = stage(inputs.first(count));
    output(rows, bias_of(inputs, has_bias, count), out);
  }
};

// A block that can be one operation: its product, its inputs and their number of rows.
template <typename Stage>
struct Fused {
  const char* name;
  StagedProduct<Stage> product;
  std::vector<mx::array> inputs;

  Fused(
      const char* block, Stage stage, std::vector<mx::array> stage_inputs, const Projection& output
  )
      : name(block),
        product{std::move(stage), LinearTask(output), output.bias.has_value()},
        inputs(std::move(stage_inputs)) {
    add_bias(inputs, output.bias);
  }

  mx::Shape shape(const Projection& output) const { return {inputs[0].shape(0), output.outputs()}; }
};

template <typename Stage>
mx::array operation(Fused<Stage> fused, const Projection& output) {
  const auto shape = fused.shape(output);
  return cpu_operation(
      fused.name,
      shape,
      std::move(fused.inputs),
      BlockBody<StagedProduct<Stage>>{std::move(fused.product)}
  );
}

template <typename Stage>
ResidualNorm operation(Fused<Stage> fused, const Projection& output, const NextNorm& next) {
  const auto shape = fused.shape(output);
  auto inputs = norm_inputs(fused.name, next, shape);
  inputs.insert(inputs.end(), fused.inputs.begin(), fused.inputs.end());
  auto outputs = cpu_operation(
      fused.name,
      {shape, shape},
      inputs,
      NormedBlockBody<StagedProduct<Stage>>{std::move(fused.product), NormStage(next)}
  );
  return {std::move(outputs[0]), std::move(outputs[1])};
}

// True if a task of ours reads these rows and weights.
bool is_fusable(const mx::array& x, const Projection& first, const Projection& last) {
  return on_cpu() && x.dtype() == mx::float32 && is_packed_for_cpu(first) &&
         is_packed_for_cpu(last);
}

// The stage of each block, with its inputs.

Fused<GatedStage> fused(const mx::array& x, const MlpBlock& block) {
  check_linear_input(x, block.gate_up);
  const int width = block.gate_up.outputs() / 2;
  check_linear_input(result_of({x.shape(0), width}), block.down);
  std::vector<mx::array> inputs = {x};
  add_bias(inputs, block.gate_up.bias);
  GatedStage stage{
      LinearTask(block.gate_up),
      block.gate_up.bias.has_value(),
      gated_function(block.activation),
  };
  return {"SakerMlpBlock", std::move(stage), std::move(inputs), block.down};
}

Fused<AttentionStage> fused(const mx::array& x, const AttentionBlock& block) {
  check_linear_input(x, block.qkv);
  const mx::array merged = result_of({x.shape(0), block.qkv.outputs()});
  check_merged(merged, block.heads, block.spans, block.options);
  AttentionStage stage{
      LinearTask(block.qkv),
      block.qkv.bias.has_value(),
      MergedAttention(block.heads, block.spans, block.options),
  };
  const mx::array attended = result_of({x.shape(0), stage.attention.attended_width()});
  check_linear_input(attended, block.output);
  std::vector<mx::array> inputs = {x};
  add_bias(inputs, block.qkv.bias);
  const auto heads = merged_inputs(block.heads);
  inputs.insert(inputs.end(), heads.begin(), heads.end());
  return {"SakerAttentionBlock", std::move(stage), std::move(inputs), block.output};
}

bool is_fusable(const mx::array& x, const AttentionBlock& block) {
  return is_fusable(x, block.qkv, block.output) && attends_pages(block.spans);
}

}  // namespace

ResidualNorm add_and_norm(const mx::array& result, const NextNorm& next) {
  const bool half = next.half_weight && result.dtype() == mx::bfloat16;
  NormParts norm = next.norm;
  if (half) {
    norm.weight = *next.half_weight;
  }
  return norm_residual(next.stream, result, norm, next.scales);
}

ResidualNorm linear_block(const mx::array& x, const Projection& output, const NextNorm& next) {
  if (!is_fusable(x, output, output) || !NormStage::runs(next)) {
    return add_and_norm(linear(x, output), next);
  }
  check_linear_input(x, output);
  return operation(Fused<GivenRows>("SakerLinearBlock", {}, {x}, output), output, next);
}

mx::array mlp_block(const mx::array& x, const MlpBlock& block) {
  if (!is_fusable(x, block.gate_up, block.down)) {
    return linear(gated_activation(linear(x, block.gate_up), block.activation), block.down);
  }
  return operation(fused(x, block), block.down);
}

ResidualNorm mlp_block(const mx::array& x, const MlpBlock& block, const NextNorm& next) {
  if (!is_fusable(x, block.gate_up, block.down) || !NormStage::runs(next)) {
    return add_and_norm(mlp_block(x, block), next);
  }
  return operation(fused(x, block), block.down, next);
}

mx::array attention_block(const mx::array& x, const AttentionBlock& block) {
  if (!is_fusable(x, block)) {
    const auto merged = linear(x, block.qkv);
    return linear(attend_merged(merged, block.heads, block.spans, block.options), block.output);
  }
  return operation(fused(x, block), block.output);
}

ResidualNorm attention_block(
    const mx::array& x, const AttentionBlock& block, const NextNorm& next
) {
  if (!is_fusable(x, block) || !NormStage::runs(next)) {
    return add_and_norm(attention_block(x, block), next);
  }
  return operation(fused(x, block), block.output, next);
}

}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/experts/experts_block.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/runtime/mapped_pages.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/experts/expert_products.h"
#include "saker/kernels/ops/experts/shared_task.h"
#include "saker/kernels/ops/gated_rows.h"
#include "saker/kernels/ops/linear_task.h"
#include "saker/kernels/ops/norm_stage.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

constexpr const char* kName = "SakerExpertsBlock";

// The operation's task. Inputs: x, the router's bias and rows if any, the shared expert's biases.
struct ExpertsTask {
  LinearTask router;
  bool has_bias;
  bool has_rows;
  RouterOptions routing;
  RouterTensors router_tensors;
  ExpertWeights gate_up;
  ExpertWeights down;
  std::optional<SharedTask> shared;
  const LinearBodies* bodies;
  GatedFunction function;
  bool stays_in_file;  // Some experts' weights.

  void operator()(std::span<const mx::array> inputs, float* out) const {
    const InputRows x = input_rows(inputs[0]);
    mx::array logits = memory_for({x.count, router.outputs});
    const InputRows routed = has_rows ? input_rows(inputs[has_bias ? 2 : 1]) : x;
    router(routed, has_bias ? inputs[1].data<float>() : nullptr, logits.data<float>());
    const RowRouter rules(routing, router_tensors);
    Routes routes(logits.data<float>(), x.count, router.outputs, rules);
    // Products would wait for one page after the other.
    if (stays_in_file && finds_pages_cold()) {
      for (const ExpertRun& run : routes.runs) {
        gate_up.ask_for_pages(run.expert);
        down.ask_for_pages(run.expert);
      }
    }
    std::optional<SharedRows> beside;
    if (shared) {
      beside.emplace(*shared, x, inputs.subspan(1U + (has_bias ? 1U : 0U) + (has_rows ? 1U : 0U)));
    }
    SharedRows* const rows = beside ? &*beside : nullptr;
    ExpertProducts(gate_up, down, rows, x, std::move(routes))(*bodies, function, out);
  }
};

void check(const mx::array& x, const ExpertsBlock& block) {
  check_linear_input(x, block.router);
  const int experts = block.router.outputs();
  check_router(block.routing, block.router_tensors, experts);
  require(
      !block.router_rows || block.router_rows->shape() == x.shape(),
      ErrorCode::kInternal,
      "[experts] the router's rows do not fit the experts'"
  );
  const int width = block.down.columns();
  require(
      block.gate_up.experts() == experts && block.down.experts() == experts &&
          block.gate_up.columns() == x.shape(1) &&
          (block.gate_up.rows() == 2 * width || block.gate_up.rows() == width),
      ErrorCode::kInternal,
      "[experts] {} experts of [{}, {}] and {} of [{}, {}] do not fit {} outputs for rows of {}",
      block.gate_up.experts(),
      block.gate_up.rows(),
      block.gate_up.columns(),
      block.down.experts(),
      block.down.rows(),
      width,
      experts,
      x.shape(1)
  );
  if (block.shared) {
    check_shared(*block.shared, x.shape(1), block.down.rows());
  }
}

ExpertsTask task_of(const ExpertsBlock& block) {
  const LinearBodies* bodies = kernel_table().linear;
  block.gate_up.check_orders(*bodies);
  block.down.check_orders(*bodies);
  return {
      LinearTask(block.router),
      block.router.bias.has_value(),
      block.router_rows.has_value(),
      block.routing,
      block.router_tensors,
      block.gate_up,
      block.down,
      block.shared ? std::optional(SharedTask(*block.shared, block.activation)) : std::nullopt,
      bodies,
      gated_function(block.activation),
      block.gate_up.stays_in_file() || block.down.stays_in_file(),
  };
}

// x, and what else the task reads.
void add_inputs(std::vector<mx::array>& inputs, const mx::array& x, const ExpertsBlock& block) {
  inputs.push_back(x);
  add_bias(inputs, block.router.bias);
  if (block.router_rows) {
    inputs.push_back(*block.router_rows);
  }
  if (block.shared) {
    add_bias(inputs, block.shared->gate_up.bias);
    add_bias(inputs, block.shared->down.bias);
    if (block.shared->share) {
      add_bias(inputs, block.shared->share->bias);
    }
  }
}

// True if an expert's gates and ups lie as GateRows has them, and its down projection is one weight.
bool has_mlps(const ExpertsBlock& block) {
  const bool is_gated = block.gate_up.rows() != block.down.columns();
  const auto is_gate_up = [&](const std::vector<PackedWeight>& parts) {
    return parts.size() == 1 ||
           (is_gated && parts.size() == 2 && parts[0].rows() == parts[1].rows());
  };
  const auto is_down = [](const std::vector<PackedWeight>& parts) { return parts.size() == 1; };
  return std::ranges::all_of(*block.gate_up.packed(), is_gate_up) &&
         std::ranges::all_of(*block.down.packed(), is_down);
}

}  // namespace

bool runs_experts_block(const mx::array& x, const ExpertsBlock& block) {
  const bool has_floats =
      x.dtype() == mx::float32 && (!block.router_rows || block.router_rows->dtype() == mx::float32);
  return on_cpu() && has_floats && x.size() > 0 && is_packed_for_cpu(block.router) &&
         has_mlps(block) && (!block.shared || runs_shared(*block.shared));
}

mx::array experts_block(const mx::array& x, const ExpertsBlock& block) {
  check(x, block);
  std::vector<mx::array> inputs;
  add_inputs(inputs, x, block);
  const mx::Shape shape = {x.shape(0), block.down.rows()};
  return cpu_operation(kName, shape, std::move(inputs), BlockBody<ExpertsTask>{task_of(block)});
}

ResidualNorm experts_block(const mx::array& x, const ExpertsBlock& block, const NextNorm& next) {
  if (!NormStage::runs(next)) {
    return add_and_norm(experts_block(x, block), next);
  }
  check(x, block);
  const mx::Shape shape = {x.shape(0), block.down.rows()};
  auto inputs = norm_inputs(kName, next, shape);
  add_inputs(inputs, x, block);
  auto outputs = cpu_operation(
      kName, {shape, shape}, inputs, NormedBlockBody<ExpertsTask>{task_of(block), NormStage(next)}
  );
  return {std::move(outputs[0]), std::move(outputs[1])};
}

}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/experts/experts_block.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/multiply_chain.h"
#include "saker/kernels/cpu/runtime/mapped_pages.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/experts/expert_rows.h"
#include "saker/kernels/ops/gated_rows.h"
#include "saker/kernels/ops/linear_task.h"
#include "saker/kernels/ops/norm_stage.h"
#include "saker/kernels/ops/strided_rows.h"
#include "saker/kernels/storage/packed_storage.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

constexpr const char* kName = "SakerExpertsBlock";

// The experts that rows take.
struct Routes {
  std::vector<int> ids;        // [N, R]
  std::vector<float> weights;  // [N, R]
  std::vector<int> pairs;      // [P], sorted by expert.
  std::vector<ExpertRun> runs;
  int ranks;

  Routes(const float* logits, int rows, int experts, const RowRouter& router)
      : ids(static_cast<std::size_t>(rows) * static_cast<std::size_t>(router.options.chosen)),
        weights(ids.size()),
        pairs(ids.size()),
        ranks(router.options.chosen) {
    const auto width = static_cast<std::size_t>(experts);
    const auto count = static_cast<std::size_t>(ranks);
    // An exponential costs about as much as reading 16 floats.
    each_row(rows, 16L * experts, [&](int row) {
      const std::size_t at = static_cast<std::size_t>(row) * count;
      const std::span<const float> of_row(logits + static_cast<std::size_t>(row) * width, width);
      choose_row(of_row, router, {ids.data() + at, count}, weights.data() + at);
    });
    std::vector<int> sorted(ids.size());
    sort_pairs(ids, experts, pairs.data(), sorted.data());
    runs = runs_of(sorted);
  }

  int row_at(int place) const { return pairs[static_cast<std::size_t>(place)] / ranks; }
};

// Where a run's gates and ups lie: its rows of gates, then those of ups, or both side by side.
// Experts without gates have ups only, which stand in place of gates; `up` is a row of ones then.
struct ExpertGates {
  float* gate;
  const float* up;
  std::ptrdiff_t gate_stride;
  std::ptrdiff_t up_stride;
};

// The products of all runs.
class ExpertProducts {
 public:
  ExpertProducts(
      const ExpertWeights& gate_up, const ExpertWeights& down, const InputRows& x, Routes routes
  )
      : routes_(std::move(routes)),
        x_(x),
        width_(down.columns()),
        merged_width_(gate_up.rows()),
        ones_(is_gated() ? 0 : static_cast<std::size_t>(width_), 1.0F),
        merged_(memory_for({pairs(), merged_width_})),
        fed_(memory_for({pairs(), down.rows()})) {
    for (const ExpertRun& run : routes_.runs) {
      const auto expert = static_cast<std::size_t>(run.expert);
      add_gate_up(run, (*gate_up.packed())[expert], gate_up.bias(run.expert));
      add_down(run, (*down.packed())[expert].front(), down.bias(run.expert));
    }
  }

  ExpertProducts(const ExpertProducts&) = delete;
  ExpertProducts& operator=(const ExpertProducts&) = delete;

  // Sums [N, outputs].
  void operator()(const LinearBodies& bodies, GatedFunction function, float* out) {
    ProductChain chain{first_, feeds_, second_, {}};
    chain.between = [this, function](int run) {
      const ExpertGates& rows = gates_[static_cast<std::size_t>(run)];
      const int count = routes_.runs[static_cast<std::size_t>(run)].count;
      for (std::ptrdiff_t row = 0; row < count; ++row) {
        float* gate = rows.gate + row * rows.gate_stride;
        function({gate, rows.up + row * rows.up_stride, gate}, width_);
      }
    };
    multiply_chain(bodies, chain);
    combine_rows(
        fed_.data<float>(),
        places_of_pairs(routes_.pairs),
        routes_.weights.data(),
        x_.count,
        fed_.shape(1),
        out
    );
  }

 private:
  int pairs() const { return static_cast<int>(routes_.pairs.size()); }

  bool is_gated() const { return merged_width_ != width_; }

  ExpertGates gates_at(float* out, int count, bool is_joined) const {
    if (!is_gated()) {
      return {out, ones_.data(), width_, 0};
    }
    const std::ptrdiff_t to_up = is_joined ? width_ : std::ptrdiff_t{count} * width_;
    const std::ptrdiff_t stride = is_joined ? merged_width_ : width_;
    return {out, out + to_up, stride, stride};
  }

  void add_gate_up(
      const ExpertRun& run, const std::vector<PackedWeight>& parts, const float* bias
  ) {
    float* out = merged_.data<float>() + std::ptrdiff_t{run.first} * merged_width_;
    gates_.push_back(gates_at(out, run.count, parts.size() == 1));
    for (const PackedWeight& part : parts) {
      RowProduct product{&part.storage().matrix, rows_of(run), bias, out};
      if (run.count > 1) {
        product.make = &gather_;
        product.first_made = run.first;
      }
      first_.push_back(product);
      feeds_.push_back(static_cast<int>(second_.size()));
      out += std::ptrdiff_t{run.count} * width_;
      bias += bias != nullptr ? width_ : 0;
    }
  }

  // A single row is read where it is, so that its experts share what is prepared of it.
  InputRows rows_of(const ExpertRun& run) const {
    InputRows rows = x_;
    rows.count = run.count;
    rows.data += run.count == 1 ? routes_.row_at(run.first) * x_.row_stride : 0;
    return rows;
  }

  void add_down(const ExpertRun& run, const PackedWeight& weight, const float* bias) {
    const ExpertGates& rows = gates_.back();
    const int outputs = weight.rows();
    float* out = fed_.data<float>() + std::ptrdiff_t{run.first} * outputs;
    const InputRows activated{rows.gate, rows.gate_stride, 1, run.count};
    second_.push_back({&weight.storage().matrix, activated, bias, out});
  }

  void gather(int first, int count, float* to) const {
    for (int place = first; place < first + count; ++place) {
      const float* from = x_.data + routes_.row_at(place) * x_.row_stride;
      for (int k = 0; k < columns(); ++k) {
        to[k] = from[k * x_.column_stride];
      }
      to += columns();
    }
  }

  int columns() const { return first_.front().weight->columns; }

  Routes routes_;
  InputRows x_;
  int width_;                // F
  int merged_width_;         // 2 F, or F.
  std::vector<float> ones_;  // [F] of experts without gates.
  mx::array merged_;         // [P, 2 F]: gates and ups; then activated rows in place of gates.
  mx::array fed_;            // [P, outputs]
  std::vector<RowProduct> first_;
  std::vector<int> feeds_;
  std::vector<RowProduct> second_;
  std::vector<ExpertGates> gates_;  // By run.
  RowProducer gather_ = [this](int first, int count, float* to) { gather(first, count, to); };
};

// The operation's task. Inputs: x, the router's bias and rows if any.
struct ExpertsTask {
  LinearTask router;
  bool has_bias;
  bool has_rows;
  RouterOptions routing;
  RouterTensors router_tensors;
  ExpertWeights gate_up;
  ExpertWeights down;
  const LinearBodies* bodies;
  GatedFunction function;

  void operator()(std::span<const mx::array> inputs, float* out) const {
    const InputRows x = input_rows(inputs[0]);
    mx::array logits = memory_for({x.count, router.outputs});
    const InputRows routed = has_rows ? input_rows(inputs[has_bias ? 2 : 1]) : x;
    router(routed, has_bias ? inputs[1].data<float>() : nullptr, logits.data<float>());
    const RowRouter rules(routing, router_tensors);
    Routes routes(logits.data<float>(), x.count, router.outputs, rules);
    // Products would wait for one page after the other.
    if (finds_pages_cold()) {
      for (const ExpertRun& run : routes.runs) {
        gate_up.ask_for_pages(run.expert);
        down.ask_for_pages(run.expert);
      }
    }
    ExpertProducts(gate_up, down, x, std::move(routes))(*bodies, function, out);
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
      bodies,
      gated_function(block.activation),
  };
}

// x, and what else the task reads.
void add_inputs(std::vector<mx::array>& inputs, const mx::array& x, const ExpertsBlock& block) {
  inputs.push_back(x);
  add_bias(inputs, block.router.bias);
  if (block.router_rows) {
    inputs.push_back(*block.router_rows);
  }
}

// True if an expert's gates and ups lie as ExpertGates has them, and its down projection is one weight.
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
         has_mlps(block);
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

// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/experts/shared_task.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/storage/packed_storage.h"

#include <cstddef>

namespace saker::kernels {
namespace {

// True if the products of these rows can be products of one job with others.
bool joins_products(const SharedTask& task, int rows) {
  const LinearTask& gate_up = task.gate_up;
  const bool is_whole =
      gate_up.parts.size() == 1 ||
      (gate_up.parts.size() == 2 &&
       gate_up.parts[0].storage->matrix.rows == task.down.parts.front().storage->matrix.columns);
  return rows <= kRowsPreparedAlone * thread_pool().size() && is_whole && gate_up.int8_rows.empty();
}

}  // namespace

SharedTask::SharedTask(const SharedExpert& shared, Activation activation)
    : gate_up(shared.gate_up),
      down(shared.down),
      averaged(shared.averaged),
      function(gated_function(activation)),
      logistic(gated_function(Activation::kLogistic)),
      has_biases{
          shared.gate_up.bias.has_value(),
          shared.down.bias.has_value(),
          shared.share && shared.share->bias,
      } {
  if (shared.share) {
    share.emplace(*shared.share);
  }
}

SharedRows::SharedRows(
    const SharedTask& task, const InputRows& x, std::span<const mx::array> biases
)
    : task_(task),
      joins_(joins_products(task, x.count)),
      results_(memory_for({x.count, task.down.outputs})),
      shares_(task.share ? static_cast<std::size_t>(x.count) : 0),
      merged_(memory_for({x.count, task.gate_up.outputs})) {
  const float** to[] = {&biases_.gate_up, &biases_.down, &biases_.share};
  std::size_t next = 0;
  for (std::size_t i = 0; i < std::size(to); ++i) {
    *to[i] = task.has_biases[i] ? biases[next++].data<float>() : nullptr;
  }
  if (!joins_) {
    run_alone(x);
  }
}

int SharedRows::width() const {
  return task_.down.parts.front().storage->matrix.columns;
}

void SharedRows::run_alone(const InputRows& x) {
  const std::ptrdiff_t merged_width = task_.gate_up.outputs;
  const std::ptrdiff_t inner = width();
  task_.gate_up(x, biases_.gate_up, merged());
  const std::vector<float> ones(merged_width == inner ? static_cast<std::size_t>(inner) : 0, 1.0F);
  const RowProducer activate = [&](int first, int count, float* to) {
    const float* gate = merged() + first * merged_width;
    for (int row = 0; row < count; ++row, gate += merged_width, to += inner) {
      task_.function({gate, ones.empty() ? gate + inner : ones.data(), to}, width());
    }
  };
  task_.down({result_of({x.count, width()}), activate}, biases_.down, results());
  if (task_.share) {
    (*task_.share)(x, biases_.share, shares());
  }
  merged_.reset();
}

void SharedRows::add_to(int row, float* sum) const {
  const int outputs = task_.down.outputs;
  const float* from = results_.data<float>() + std::ptrdiff_t{row} * outputs;
  if (task_.share) {
    constexpr float kOne = 1.0F;
    float share = 0.0F;
    task_.logistic({&shares_[static_cast<std::size_t>(row)], &kOne, &share}, 1);
    for (int i = 0; i < outputs; ++i) {
      sum[i] += from[i] * share;
    }
  } else {
    for (int i = 0; i < outputs; ++i) {
      sum[i] += from[i];
    }
  }
  if (task_.averaged) {
    for (int i = 0; i < outputs; ++i) {
      sum[i] *= 0.5F;
    }
  }
}

void check_shared(const SharedExpert& shared, int columns, int outputs) {
  const int width = shared.down.weights.front().columns();
  const int inner = shared.gate_up.outputs();
  require(
      shared.gate_up.weights.front().columns() == columns && shared.down.outputs() == outputs &&
          (inner == 2 * width || inner == width) && shared.down.weights.size() == 1 &&
          (!shared.share || (shared.share->weights.front().columns() == columns &&
                             shared.share->weights.size() == 1 && shared.share->outputs() == 1)),
      ErrorCode::kInternal,
      "[experts] a shared expert of [{}, {}] and [{}, {}] does not fit rows of {}",
      inner,
      shared.gate_up.weights.front().columns(),
      shared.down.outputs(),
      width,
      columns
  );
}

bool runs_shared(const SharedExpert& shared) {
  return is_packed_for_cpu(shared.gate_up) && is_packed_for_cpu(shared.down) &&
         (!shared.share || is_packed_for_cpu(*shared.share));
}

}  // namespace saker::kernels

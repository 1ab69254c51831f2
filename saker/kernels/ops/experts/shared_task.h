// SPDX-License-Identifier: Apache-2.0
#pragma once

// A mixture's shared expert inside the mixture's task (see experts_block.h). Only this folder
// includes it.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/experts/experts_block.h"
#include "saker/kernels/ops/gated_rows.h"
#include "saker/kernels/ops/linear_task.h"

#include <optional>
#include <span>
#include <vector>

namespace saker::kernels {

struct SharedTask {
  LinearTask gate_up;
  LinearTask down;
  std::optional<LinearTask> share;
  bool averaged;
  GatedFunction function;
  GatedFunction logistic;
  bool has_biases[3];  // By product: gate_up, down, share.

  SharedTask(const SharedExpert& shared, Activation activation);
};

// The biases of a shared expert's products; null: none.
struct SharedBiases {
  const float* gate_up = nullptr;
  const float* down = nullptr;
  const float* share = nullptr;
};

// The shared expert's results of a pass's rows.
//
// The products of few rows join those of the mixture (see ExpertProducts). Many rows run
// before them, so that all threads compute activated rows.
class SharedRows {
 public:
  // `biases`: the arrays that the operation has of them, in order.
  SharedRows(const SharedTask& task, const InputRows& x, std::span<const mx::array> biases);
  SharedRows(const SharedRows&) = delete;
  SharedRows& operator=(const SharedRows&) = delete;

  const SharedTask& task() const { return task_; }

  const SharedBiases& biases() const { return biases_; }

  // True if the products are to join the mixture's; else they are done.
  bool joins() const { return joins_; }

  int width() const;  // F

  float* merged() { return merged_->data<float>(); }  // [N, 2 F]

  float* results() { return results_.data<float>(); }  // [N, outputs]

  float* shares() { return shares_.data(); }  // [N], before the logistic.

  // Adds a row's result to the mixture's `sum` [outputs].
  void add_to(int row, float* sum) const;

 private:
  void run_alone(const InputRows& x);

  const SharedTask& task_;
  SharedBiases biases_;
  bool joins_;
  mx::array results_;
  std::vector<float> shares_;
  std::optional<mx::array> merged_;
};

// Throws kInternal unless the shared expert fits rows of `columns` and results of `outputs`.
void check_shared(const SharedExpert& shared, int columns, int outputs);

// True if its weights are packed for our bodies.
bool runs_shared(const SharedExpert& shared);

}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#pragma once

// The products of a mixture inside its operation's task (see experts_block.h). Only this folder
// includes it.

#include "saker/kernels/cpu/dispatch/multiply_chain.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/ops/experts/expert_linear.h"
#include "saker/kernels/ops/experts/expert_rows.h"
#include "saker/kernels/ops/experts/shared_task.h"
#include "saker/kernels/ops/gated_rows.h"

#include <cstddef>
#include <vector>

namespace saker::kernels {

// The experts that rows take.
struct Routes {
  std::vector<int> ids;        // [N, R]
  std::vector<float> weights;  // [N, R]
  std::vector<int> pairs;      // [P], sorted by expert.
  std::vector<ExpertRun> runs;
  int ranks;

  Routes(const float* logits, int rows, int experts, const RowRouter& router);

  int row_at(int place) const { return pairs[static_cast<std::size_t>(place)] / ranks; }
};

// Where an MLP's gates and ups lie: its rows of gates, then those of ups, or both side by side.
// Without gates there are ups only, which stand in place of gates; `up` is a row of ones then.
struct GateRows {
  float* gate;
  const float* up;
  std::ptrdiff_t gate_stride;
  std::ptrdiff_t up_stride;
  int count;
  int width;
};

// The products of all runs, and of the shared expert.
class ExpertProducts {
 public:
  // `shared`: null without one.
  ExpertProducts(
      const ExpertWeights& gate_up,
      const ExpertWeights& down,
      SharedRows* shared,
      const InputRows& x,
      Routes routes
  );
  ExpertProducts(const ExpertProducts&) = delete;
  ExpertProducts& operator=(const ExpertProducts&) = delete;

  // Sums [N, outputs].
  void operator()(const LinearBodies& bodies, GatedFunction function, float* out);

 private:
  int pairs() const { return static_cast<int>(routes_.pairs.size()); }

  // An MLP whose gates and ups, `merged_width` of each row, lie at `out`.
  void add_gates(float* out, int count, int merged_width, int width, bool is_joined);
  void add_shared();
  void add_gate_up(const ExpertRun& run, const std::vector<PackedWeight>& parts, const float* bias);
  void add_down(const PackedMatrix& weight, const float* bias, float* out);
  // A single row is read where it is, so that its experts share what is prepared of it.
  InputRows rows_of(const ExpertRun& run) const;
  void gather(int first, int count, float* to) const;

  Routes routes_;
  InputRows x_;
  int columns_;              // K
  int width_;                // F
  int merged_width_;         // 2 F, or F.
  std::vector<float> ones_;  // For MLPs without gates.
  mx::array merged_;         // [P, 2 F]: gates and ups; then activated rows in place of gates.
  mx::array fed_;            // [P, outputs]
  SharedRows* shared_;
  std::vector<RowProduct> first_;
  std::vector<int> feeds_;
  std::vector<RowProduct> second_;
  std::vector<GateRows> gates_;  // By product of the second stage.
  RowProducer gather_ = [this](int first, int count, float* to) { gather(first, count, to); };
};

}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Attention on the rows of a merged projection inside an operation's task: norms and rotates the
// heads, writes keys and values, attends. attend_merged() is such a task alone.

#include "saker/kernels/cpu/dispatch/head_rows.h"
#include "saker/kernels/cpu/dispatch/row_bodies.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/ops/attend.h"
#include "saker/kernels/ops/attend_plan.h"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace saker::kernels {

struct MergedAttention {
  std::shared_ptr<const AttendPlan> plan;
  const RowBodies* bodies;
  RopePairs pairs;
  bool has_norms;
  float eps;

  // Plans the writes and reads of all spans, which are paged. Throws as plan_attention() does.
  MergedAttention(
      const MergedHeads& heads, const std::vector<AttendSpan>& spans, const AttendOptions& options
  );

  int merged_width() const;    // (H + 2 H_kv) * D
  int attended_width() const;  // H * D

  std::size_t input_count() const { return has_norms ? 4 : 2; }

  // Reads rows of a merged projection [count, merged_width] and leaves them unchanged. `inputs` are
  // those of merged_inputs(), with their values. Writes out [count, attended_width].
  void read(std::span<const mx::array> inputs, const HeadRows& merged, int count, float* out) const;
  // As above for dense rows, which it overwrites.
  void overwrite(std::span<const mx::array> inputs, float* merged, int count, float* out) const;
};

// Cosines, sines and the norms of q and k if any, in float32.
std::vector<mx::array> merged_inputs(const MergedHeads& heads);

}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#pragma once

// The implementations behind attend(): our CPU bodies over pages, and MLX's operations over
// contiguous rows.

#include "saker/kernels/cpu/dispatch/head_rows.h"
#include "saker/kernels/ops/attend.h"
#include "saker/kernels/ops/attend_plan.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace saker::kernels {

// Keys that the row at `position` sees: [keep_begin, keep_end) and [begin, end). The first range
// may be empty and ends before the second.
struct VisibleKeys {
  std::int64_t keep_begin = 0;
  std::int64_t keep_end = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Which keys rows see, by the model's window and the cache's limit.
struct Visibility {
  std::int64_t model_window = 0;  // 0: no window.
  std::int64_t cache_window = 0;  // 0: no limit.
  std::int64_t keep = 0;
  std::int64_t model_chunk = 0;  // 0: no chunks.
  std::int64_t span_end = 0;     // > 0: rows also see later keys up to here, inside their window.

  VisibleKeys at(std::int64_t position) const;
};

Visibility visibility(const AttendSpan& span, const AttendOptions& options);

// Rows to write before attention: k [n, H_kv, D], v [n, H_kv, D_v]. For contiguous stores by head:
// [1, H_kv, n, D] and [1, H_kv, n, D_v].
struct NewRows {
  mx::array k;
  mx::array v;
};

// One span of contiguous stores: writes the new rows, if any, then runs MLX's attention. q [1, H,
// n, D] -> [1, H, n, D_v].
mx::array attend_contiguous(
    const mx::array& q,
    const std::optional<NewRows>& rows,
    const AttendSpan& span,
    const AttendOptions& options
);

// Rows that a task writes.
struct PagedRows {
  HeadRows k;
  HeadRows v;
  int count;
};

// Runs a plan inside a task: writes the new rows, then attends. q [N, H, D] -> out [N, H, D_v].
void run_attention(
    const AttendPlan& plan, const HeadRows& q, const std::optional<PagedRows>& rows, float* out
);

// True if attend_merged reads these spans from pages, by our CPU bodies.
bool attends_pages(const std::vector<AttendSpan>& spans);

// Throws kInvalidArgument unless attend_merged takes these.
void check_merged(
    const mx::array& merged,
    const MergedHeads& heads,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
);

// attend_merged over pages and over contiguous stores. Inputs were checked.
mx::array attend_merged_paged(
    const mx::array& merged,
    const MergedHeads& heads,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
);
mx::array attend_merged_contiguous(
    const mx::array& merged,
    const MergedHeads& heads,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
);

// All spans, over pages of one form. Inputs are float32 and were checked.
mx::array attend_paged(
    const mx::array& q,
    const std::optional<NewRows>& rows,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
);

}  // namespace saker::kernels

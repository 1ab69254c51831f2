// SPDX-License-Identifier: Apache-2.0
#pragma once

// The plan of one pass's attention over pages. The caller's thread makes it, with all checks, so
// that later the task can fail only when out of memory.

#include "saker/kernels/cpu/dispatch/attend_bodies.h"
#include "saker/kernels/ops/attend.h"
#include "saker/kernels/storage/kv_pages.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace saker::kernels {

// Rows of one span that go into one page.
struct PageWrite {
  int first_row;  // In the pass.
  int row_count;
  int slot;  // In the page, for the first row.
  KvPage page;
  KvPage before;  // The page before, if present.
};

struct SpanPlan {
  int first_row = 0;
  int row_count = 0;
  std::vector<SeenKeys> seen;     // By row.
  std::vector<AttendPage> pages;  // All pages that any row sees, by index.
  std::shared_ptr<KvStore> store;
  int first_write = 0;  // Among the plan's writes.
  int write_count = 0;
};

// Flattened rows of a span, see AttendTile.
struct TilePlan {
  int span;
  int kv_head;
  int kv_heads;
  int first;
  int count;
};

struct AttendPlan {
  int kv_heads = 0;
  AttendShape shape{};
  std::optional<mx::array> sinks;  // The shape points to their memory.
  std::vector<SpanPlan> spans;
  std::vector<PageWrite> writes;
  std::vector<TilePlan> tiles;
  // In a page of codes, the first row is written after the page before is complete.
  bool writes_in_order = false;
  // Each tile sees new rows of its own span only and is the only one with its heads. So it may
  // write them itself.
  bool tiles_write = false;
  const AttendBodies* bodies = nullptr;

  // Floats of the largest tile's state and scratch, rounded up to cache lines.
  std::size_t state_floats = 0;
  std::size_t scratch_floats = 0;
  // Several spans share a store. They may write to the same words, so one thread writes all.
  bool shares_stores = false;
};

// A plan without writes. Throws kInternal when a store was not prepared for its span or lacks rows
// that the span sees.
AttendPlan plan_attention(
    int heads, const std::vector<AttendSpan>& spans, const AttendOptions& options
);

// Adds the writes of the spans' new rows. Throws kInternal when a store was not prepared for them.
void add_writes(AttendPlan& plan, const std::vector<AttendSpan>& spans);

}  // namespace saker::kernels

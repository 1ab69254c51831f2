// SPDX-License-Identifier: Apache-2.0
#pragma once

// What one pass of attention over pages will do, made on the caller's thread with all checks, so
// that the task can fail for want of memory only.

#include "saker/kernels/attend.h"
#include "saker/kernels/attention/bodies.h"
#include "saker/kernels/cpu/kv_pages.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace saker::kernels {

// Rows of one span that go into one page.
struct PageWrite {
  int first_row;  // In the pass.
  int row_count;
  int slot;  // In the page, of the first row.
  KvPage page;
  KvPage before;  // The page before it, if it is there.
};

struct SpanPlan {
  int first_row = 0;
  int row_count = 0;
  std::vector<SeenKeys> seen;     // By row.
  std::vector<AttendPage> pages;  // Seen by any row, by index.
  std::shared_ptr<KvStore> store;
  int first_write = 0;  // Of the plan's writes.
  int write_count = 0;
};

// Flat rows of a span, see AttendTile.
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
  std::vector<SpanPlan> spans;
  std::vector<PageWrite> writes;
  std::vector<TilePlan> tiles;
  // The first row of a page of codes is written after the page before it.
  bool writes_in_order = false;
  // Each tile sees no new rows but its own span's, and is the only one with its heads: it may write
  // them itself.
  bool tiles_write = false;
  const AttendBodies* bodies = nullptr;

  // Floats of the largest tile's state and scratch, rounded up to cache lines.
  std::size_t state_floats = 0;
  std::size_t scratch_floats = 0;
  // Spans of one store may write to the same words, so one thread does.
  bool shares_stores = false;
};

// Without writes. Throws kInternal when a store was not prepared for its span or lacks rows that
// the span sees.
AttendPlan plan_attention(
    int heads, const std::vector<AttendSpan>& spans, const AttendOptions& options
);

// Where the spans' new rows go. Throws kInternal when a store was not prepared for them.
void add_writes(AttendPlan& plan, const std::vector<AttendSpan>& spans);

}  // namespace saker::kernels

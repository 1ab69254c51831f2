// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/attend_plan.h"

#include "saker/base/error.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/layout/lanes.h"
#include "saker/kernels/ops/attend_paths.h"
#include "saker/kernels/ops/page_shape.h"
#include "saker/kernels/storage/kv_storage.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace saker::kernels {
namespace {

static_assert(kAttendBlock == kPageRows);

// Appends the pages of positions [begin, end).
void add_pages(
    const KvPages& pages, std::int64_t begin, std::int64_t end, std::vector<AttendPage>& found
) {
  std::int64_t index = begin / kPageRows;
  if (!found.empty()) {
    index = std::max(index, found.back().index + 1);
  }
  for (; index * kPageRows < end; ++index) {
    const std::byte* page = pages.find(index);
    require(
        page != nullptr,
        ErrorCode::kInternal,
        "attend: cached rows {} to {} are gone",
        index * kPageRows,
        (index + 1) * kPageRows
    );
    found.push_back({index, page});
  }
}

SpanPlan plan_span(const AttendSpan& span, const AttendOptions& options) {
  SpanPlan plan;
  plan.first_row = span.first_row;
  plan.row_count = span.row_count;
  plan.store = span.store;
  const Visibility visible = visibility(span, options);
  plan.seen.reserve(span.row_count);
  std::int64_t keep_end = 0;
  for (int row = 0; row < span.row_count; ++row) {
    const VisibleKeys keys = visible.at(span.first_position + row);
    plan.seen.push_back({keys.keep_begin, keys.keep_end, keys.begin, keys.end});
    if (keys.keep_begin < keys.keep_end) {
      keep_end = std::max(keep_end, keys.keep_end);
    }
  }
  const KvPages& pages = *span.store->storage().pages();
  const SeenKeys& first = plan.seen.front();
  if (first.keep_begin < keep_end) {
    add_pages(pages, first.keep_begin, keep_end, plan.pages);
  }
  add_pages(pages, first.begin, plan.seen.back().end, plan.pages);
  return plan;
}

void add_span_writes(const AttendSpan& span, std::vector<PageWrite>& writes) {
  const KvPages& pages = *span.store->storage().pages();
  for (int row = 0; row < span.row_count;) {
    const std::int64_t position = span.first_position + row;
    const std::int64_t index = position / kPageRows;
    require(
        pages.find_private(index) != nullptr,
        ErrorCode::kInternal,
        "attend: the store was not prepared for row {}",
        position
    );
    const int slot = static_cast<int>(position % kPageRows);
    const int count = std::min(kPageRows - slot, span.row_count - row);
    writes.push_back({span.first_row + row, count, slot, pages.page(index), pages.page(index - 1)});
    row += count;
  }
}

constexpr int kPiecesPerThread = 4;  // Minimum, to balance threads.
constexpr int kFewestRows = 8;       // A tile has as many, where threads share a KV head.

// Tiles of many rows read the cache less often, but each thread should get several tiles.
int tile_rows(const AttendPlan& plan, const std::vector<AttendSpan>& spans) {
  const int kv_heads = plan.kv_heads;
  const int group = plan.shape.group;
  const int threads = thread_pool().size();
  const std::int64_t enough = kPiecesPerThread * threads;
  int rows = kAttendTileRows;
  const auto tiles = [&] {
    std::int64_t count = 0;
    for (const AttendSpan& span : spans) {
      count += (static_cast<std::int64_t>(span.row_count) * group + rows - 1) / rows;
    }
    return count * kv_heads;
  };
  while (rows > kAttendBatchRows && tiles() < enough) {
    rows /= 2;
  }
  // Threads share the rows of a single KV head, unless they can share its chunks.
  const bool alone = plan.spans.size() == 1 && kv_heads == 1 && tiles() < threads;
  const auto chunks = std::ssize(plan.spans.front().pages) / kAttendChunkBlocks;
  if (alone && chunks < threads) {
    const int all = spans.front().row_count * group;
    rows = std::min(rows, std::max(kFewestRows, (all + threads - 1) / threads));
  }
  return rows;
}

// Maximum blocks of keys, counted per head, in a piece of the pass's work.
std::int64_t piece_blocks(const AttendPlan& plan) {
  std::int64_t pages = 0;
  for (const SpanPlan& span : plan.spans) {
    pages += std::ssize(span.pages);
  }
  return pages * plan.kv_heads / (kPiecesPerThread * thread_pool().size());
}

// KV heads per tile of a span. A page's heads are adjacent in memory. So few rows, which are bound
// by memory bandwidth, take as many heads as keep pieces (tiles by chunks) small enough. Codes are
// bound by arithmetic: one head's rows stay in L1.
int tile_heads(const AttendPlan& plan, const SpanPlan& span, std::int64_t piece) {
  if (plan.shape.key_codes.is_quantized()) {
    return 1;
  }
  const int all = plan.kv_heads;
  const auto chunk = std::min<std::int64_t>(std::ssize(span.pages), kAttendChunkBlocks);
  const int rows = span.row_count * plan.shape.group;
  int heads = all;
  while (heads > 1 && (all % heads != 0 || heads * rows > kAttendBatchRows || chunk * heads > piece)
  ) {
    heads /= 2;
  }
  return heads;
}

// Late rows see the most keys. They come first, so that no thread ends with a long tile.
void add_tiles(AttendPlan& plan, int span_index, int most_rows, std::int64_t piece) {
  const SpanPlan& span = plan.spans[span_index];
  const int rows = span.row_count * plan.shape.group;
  const int heads = tile_heads(plan, span, piece);
  for (int head = 0; head < plan.kv_heads; head += heads) {
    for (int first = (rows - 1) / most_rows * most_rows; first >= 0; first -= most_rows) {
      const int count = std::min(most_rows, rows - first);
      plan.tiles.push_back({span_index, head, heads, first, count});
      plan.state_floats = std::max(plan.state_floats, heads * state_floats(plan.shape, count));
      plan.scratch_floats =
          std::max(plan.scratch_floats, scratch_floats(plan.shape, heads * count));
    }
  }
}

std::size_t whole_lines(std::size_t floats) {
  return (floats + kLanes - 1) / kLanes * kLanes;
}

}  // namespace

AttendPlan plan_attention(
    int heads, const std::vector<AttendSpan>& spans, const AttendOptions& options
) {
  const KvPages& pages = *spans[0].store->storage().pages();
  AttendPlan plan;
  plan.kv_heads = pages.layout().kv_heads;
  plan.shape = attend_shape(pages, heads, options.scale, options.softcap);
  plan.sinks = options.sinks;
  plan.shape.sinks = plan.sinks ? plan.sinks->data<float>() : nullptr;
  plan.bodies = kernel_table().attend;
  plan.writes_in_order = plan.shape.key_codes.has_offsets();
  plan.spans.reserve(spans.size());
  for (const AttendSpan& span : spans) {
    require(
        span.first_position + span.row_count <= span.store->storage().pages()->end(),
        ErrorCode::kInternal,
        "attend: the store was not prepared for row {}",
        span.first_position + span.row_count - 1
    );
    plan.spans.push_back(plan_span(span, options));
  }
  const int most_rows = tile_rows(plan, spans);
  const std::int64_t piece = piece_blocks(plan);
  for (int span = 0; span < std::ssize(plan.spans); ++span) {
    add_tiles(plan, span, most_rows, piece);
  }
  plan.scratch_floats = whole_lines(plan.scratch_floats);
  return plan;
}

void add_writes(AttendPlan& plan, const std::vector<AttendSpan>& spans) {
  std::set<const KvStore*> stores;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    plan.spans[i].first_write = static_cast<int>(plan.writes.size());
    add_span_writes(spans[i], plan.writes);
    plan.spans[i].write_count = static_cast<int>(plan.writes.size()) - plan.spans[i].first_write;
    stores.insert(spans[i].store.get());
  }
  const auto has_all_rows = [&](const TilePlan& tile) {
    return tile.count == plan.spans[tile.span].row_count * plan.shape.group;
  };
  plan.shares_stores = stores.size() != spans.size();
  plan.tiles_write = !plan.shares_stores && std::ranges::all_of(plan.tiles, has_all_rows);
}

}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0

// Attention over pages by our CPU bodies: one task writes the pass's rows, then computes all tiles.

#include "saker/kernels/cpu/runtime/aligned_bytes.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/ops/attend_paths.h"
#include "saker/kernels/ops/attend_plan.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/strided_rows.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

constexpr std::int64_t kChunkKeys = kAttendChunkBlocks * kAttendBlock;

// Below so many multiplications a hand-over to other threads costs more than it saves.
constexpr std::int64_t kSerialWork = 1 << 17;

// Memory for `count` floats until the next call on this thread. The thread keeps it: fresh memory
// per pass would cost more than some passes.
float* kept_floats(std::size_t count) {
  thread_local AlignedBytes memory;
  memory.reserve(count * sizeof(float));
  return reinterpret_cast<float*>(memory.data());
}

// Calls body(worker, job) for jobs 0 .. jobs - 1. Calls with the same worker number never overlap.
template <typename Body>
void each_job(int workers, int jobs, Body body) {
  if (workers <= 1) {
    for (int job = 0; job < jobs; ++job) {
      body(0, job);
    }
    return;
  }
  std::atomic<int> next = 0;
  thread_pool().run(workers, [&](int worker) {
    for (int job = next.fetch_add(1); job < jobs; job = next.fetch_add(1)) {
      body(worker, job);
    }
  });
}

// The pages that a tile sees in one chunk.
struct ChunkPages {
  std::int64_t index;
  AttendChunk chunk;
};

class PagedAttention {
 public:
  PagedAttention(const AttendPlan& plan, const HeadRows& q, float* out)
      : plan_(plan), q_(q), out_(out) {}

  // `rows`: rows to write first.
  void run(int workers, const std::optional<PagedRows>& rows) const {
    const int tiles = static_cast<int>(plan_.tiles.size());
    std::vector<std::vector<ChunkPages>> chunks(tiles);
    std::size_t chunk_count = 0;
    std::int64_t work = 0;
    std::int64_t most = 0;  // In one tile.
    for (int i = 0; i < tiles; ++i) {
      chunks[i] = chunks_of(plan_.tiles[i]);
      chunk_count += chunks[i].size();
      const std::int64_t of_tile = blocks_of(plan_.tiles[i], chunks[i]);
      work += of_tile;
      most = std::max(most, of_tile);
    }
    // Such a tile would make one thread finish late.
    const bool uneven = most * 2 * workers > work;
    const bool by_chunk = workers > 1 && uneven && chunk_count > plan_.tiles.size();
    const bool in_tiles = !by_chunk && plan_.tiles_write;
    if (rows && !in_tiles) {
      write(*rows, rows->count > 1 && !plan_.shares_stores ? workers : 1);
    }
    if (by_chunk) {
      compute_by_chunk(workers, chunks, chunk_count);
    } else {
      compute_by_tile(std::min(workers, tiles), chunks, in_tiles ? rows : std::nullopt);
    }
  }

 private:
  // The rows of one head. A producer's rows are computed into this thread's memory.
  HeadRows keys_of(const HeadRows& k, const PageWrite& write, int head) const {
    if (k.made == nullptr) {
      return {StridedRows::at(k, write.first_row, head), k.row_stride};
    }
    const std::ptrdiff_t dim = plan_.shape.head_dim;
    thread_local AlignedBytes memory;
    memory.reserve(static_cast<std::size_t>(write.row_count * dim) * sizeof(float));
    auto* made = reinterpret_cast<float*>(memory.data());
    for (int i = 0; i < write.row_count; ++i) {
      k.made->make(write.first_row + i, head, made + i * dim);
    }
    return {made, dim};
  }

  void write_head(const PagedRows& rows, const PageWrite& write, int head) const {
    const KvPageLayout& layout = *write.page.layout;
    std::byte* const page = write.page.data;
    if (write.slot == 0) {
      begin_page(write.page, write.before, head);
    }
    const HeadRows keys = keys_of(rows.k, write, head);
    const PageRows of{
        keys.data,
        StridedRows::at(rows.v, write.first_row, head),
        keys.row_stride,
        rows.v.row_stride,
        write.slot,
        write.row_count,
        write.page.data + layout.keys_at(head),
    };
    const bool plain = layout.bf16 && !layout.key_codes.is_quantized();
    if (plain && plan_.bodies->write_bf16_rows != nullptr) {
      plan_.bodies->write_bf16_rows(first_page_shape(plan_.shape), of);
      return;
    }
    const auto value = [&](int i) { return of.values + i * of.value_stride; };
    for (int i = 0; i < of.count; ++i) {
      write_key(layout, page, head, of.slot + i, of.keys + i * of.key_stride);
    }
    for (int i = 0; i < of.count;) {
      const int slot = of.slot + i;
      if (slot % 2 == 0 && i + 1 < of.count) {
        write_value_pair(layout, page, head, slot, value(i), value(i + 1));
        i += 2;
      } else {
        write_value(layout, page, head, slot, value(i));
        ++i;
      }
    }
  }

  // Writes all of the pass's rows.
  void write(const PagedRows& rows, int workers) const {
    const int heads = plan_.kv_heads;
    if (plan_.writes_in_order) {
      const int jobs = static_cast<int>(plan_.spans.size()) * heads;
      each_job(std::min(workers, jobs), jobs, [&](int, int job) {
        write_span(rows, plan_.spans[job / heads], job % heads);
      });
      return;
    }
    const int jobs = static_cast<int>(plan_.writes.size()) * heads;
    each_job(std::min(workers, jobs), jobs, [&](int, int job) {
      write_head(rows, plan_.writes[job / heads], job % heads);
    });
  }

  // Writes the rows of one head of a span, in order.
  void write_span(const PagedRows& rows, const SpanPlan& span, int head) const {
    for (int i = 0; i < span.write_count; ++i) {
      write_head(rows, plan_.writes[span.first_write + i], head);
    }
  }

  // Writes the rows of the tile's span, for its heads.
  void write_tile(const PagedRows& rows, const TilePlan& tile) const {
    for (int head = tile.kv_head; head < tile.kv_head + tile.kv_heads; ++head) {
      write_span(rows, plan_.spans[tile.span], head);
    }
  }

  // Blocks of keys times rows, over all heads of the tile.
  static std::int64_t blocks_of(const TilePlan& tile, const std::vector<ChunkPages>& chunks) {
    std::int64_t pages = 0;
    for (const ChunkPages& chunk : chunks) {
      pages += chunk.chunk.count;
    }
    return pages * tile.kv_heads * tile.count;
  }

  std::size_t state_floats_of(const TilePlan& tile) const {
    return tile.kv_heads * state_floats(plan_.shape, tile.count);
  }

  AttendTile task(const TilePlan& tile) const {
    const SpanPlan& span = plan_.spans[tile.span];
    const std::ptrdiff_t out_row =
        static_cast<std::ptrdiff_t>(plan_.shape.heads) * plan_.shape.value_head_dim;
    HeadRows q = q_;
    q.data += span.first_row * q.row_stride;
    q.first_made = span.first_row;
    return {
        q,
        out_ + span.first_row * out_row,
        span.seen.data(),
        tile.kv_head,
        tile.kv_heads,
        tile.first,
        tile.count,
    };
  }

  std::vector<ChunkPages> chunks_of(const TilePlan& tile) const {
    const SpanPlan& span = plan_.spans[tile.span];
    const SeenKeys& first = span.seen[tile.first / plan_.shape.group];
    const SeenKeys& last = span.seen[(tile.first + tile.count - 1) / plan_.shape.group];
    const std::int64_t keep_end = std::max(first.keep_end, last.keep_end);
    std::vector<ChunkPages> chunks;
    for (const AttendPage& page : span.pages) {
      const std::int64_t begin = page.index * kAttendBlock;
      const std::int64_t end = begin + kAttendBlock;
      const bool kept = end > first.keep_begin && begin < keep_end;
      if (!kept && (end <= first.begin || begin >= last.end)) {
        continue;
      }
      const std::int64_t index = begin / kChunkKeys;
      if (!chunks.empty() && chunks.back().index == index) {
        // One chunk has one state, even if the tile skips pages inside it.
        AttendChunk& chunk = chunks.back().chunk;
        chunk.count = static_cast<int>(&page - chunk.pages) + 1;
      } else {
        chunks.push_back({index, {&page, 1}});
      }
    }
    return chunks;
  }

  // One thread computes all of a tile.
  void compute_by_tile(
      int workers,
      const std::vector<std::vector<ChunkPages>>& chunks,
      const std::optional<PagedRows>& rows
  ) const {
    const std::size_t floats = plan_.scratch_floats + 2 * plan_.state_floats;
    float* const memory = kept_floats(floats * std::max(workers, 1));
    const AttendBodies& bodies = *plan_.bodies;
    each_job(workers, static_cast<int>(plan_.tiles.size()), [&](int worker, int job) {
      float* scratch = memory + floats * worker;
      float* state = scratch + plan_.scratch_floats;
      float* total = state + plan_.state_floats;
      const AttendTile tile = task(plan_.tiles[job]);
      if (rows) {
        write_tile(*rows, plan_.tiles[job]);
      }
      bodies.load_queries(plan_.shape, tile, scratch);
      const bool one_chunk = chunks[job].size() == 1;
      for (const ChunkPages& chunk : chunks[job]) {
        bodies.attend_chunk(plan_.shape, tile, chunk.chunk, scratch, state);
        if (!one_chunk) {
          bodies.merge(plan_.shape, tile, chunk.index, state, total);
        }
      }
      bodies.finish(plan_.shape, tile, one_chunk ? state : total);
    });
  }

  // For few tiles over many keys: threads share the chunks, then each tile merges its own in order.
  void compute_by_chunk(
      int workers, const std::vector<std::vector<ChunkPages>>& chunks, std::size_t chunk_count
  ) const {
    struct Job {
      int tile;
      const ChunkPages* chunk;
      std::size_t state;  // Offset in the floats of states.
    };

    // Each tile's states have their own size: tiles of one row may be beside a prefill's.
    std::vector<Job> jobs;
    jobs.reserve(chunk_count);
    std::size_t floats = 0;
    for (std::size_t tile = 0; tile < chunks.size(); ++tile) {
      for (const ChunkPages& chunk : chunks[tile]) {
        jobs.push_back({static_cast<int>(tile), &chunk, floats});
        floats += state_floats_of(plan_.tiles[tile]);
      }
    }
    float* const scratch =
        kept_floats(plan_.scratch_floats * workers + plan_.state_floats + floats);
    float* const total = scratch + plan_.scratch_floats * workers;
    float* const states = total + plan_.state_floats;
    const AttendBodies& bodies = *plan_.bodies;
    each_job(workers, static_cast<int>(jobs.size()), [&](int worker, int job) {
      float* own = scratch + plan_.scratch_floats * worker;
      const AttendTile tile = task(plan_.tiles[jobs[job].tile]);
      bodies.load_queries(plan_.shape, tile, own);
      bodies.attend_chunk(plan_.shape, tile, jobs[job].chunk->chunk, own, states + jobs[job].state);
    });
    for (std::size_t job = 0; job < jobs.size(); ++job) {
      const AttendTile tile = task(plan_.tiles[jobs[job].tile]);
      const float* state = states + jobs[job].state;
      bodies.merge(plan_.shape, tile, jobs[job].chunk->index, state, total);
      if (job + 1 == jobs.size() || jobs[job + 1].tile != jobs[job].tile) {
        bodies.finish(plan_.shape, tile, total);
      }
    }
  }

  const AttendPlan& plan_;
  HeadRows q_;
  float* out_;
};

// Approximate multiplications of the pass.
std::int64_t work_of(const AttendPlan& plan) {
  std::int64_t work = 0;
  for (const SpanPlan& span : plan.spans) {
    const std::int64_t keys = static_cast<std::int64_t>(span.pages.size()) * kAttendBlock;
    work += keys * span.row_count * plan.shape.heads *
            (plan.shape.head_dim + plan.shape.value_head_dim);
  }
  return work;
}

}  // namespace

void run_attention(
    const AttendPlan& plan, const HeadRows& q, const std::optional<PagedRows>& rows, float* out
) {
  const int workers = work_of(plan) < kSerialWork ? 1 : thread_pool().size();
  PagedAttention(plan, q, out).run(workers, rows);
}

namespace {

struct AttendBody {
  std::shared_ptr<const AttendPlan> plan;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    const bool writes = inputs.size() == 3;
    return [plan = plan,
            q = StridedRows(inputs[0]),
            k = writes ? std::optional(StridedRows(inputs[1])) : std::nullopt,
            v = writes ? std::optional(StridedRows(inputs[2])) : std::nullopt,
            out = outputs[0].data<float>()]() mutable {
      const auto rows =
          k ? std::optional(PagedRows{k->resolve(), v->resolve(), k->rows()}) : std::nullopt;
      run_attention(*plan, q.resolve(), rows, out);
    };
  }
};

}  // namespace

mx::array attend_paged(
    const mx::array& q,
    const std::optional<NewRows>& rows,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
) {
  AttendPlan made = plan_attention(q.shape(1), spans, options);
  std::vector<mx::array> inputs = {q};
  if (rows) {
    add_writes(made, spans);
    inputs.insert(inputs.end(), {rows->k, rows->v});
  }
  auto plan = std::make_shared<const AttendPlan>(std::move(made));
  mx::Shape shape = {q.shape(0), q.shape(1), plan->shape.value_head_dim};
  return cpu_operation(
      "SakerAttend", std::move(shape), std::move(inputs), AttendBody{std::move(plan)}
  );
}

}  // namespace saker::kernels

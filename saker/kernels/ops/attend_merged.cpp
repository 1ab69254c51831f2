// SPDX-License-Identifier: Apache-2.0

// Attention on the rows of a merged projection: prepares the heads, then attends like attend_paged.

#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/row_bodies.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/attend_paths.h"
#include "saker/kernels/ops/attend_plan.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/linear_task.h"
#include "saker/kernels/ops/merged_attention.h"
#include "saker/kernels/ops/strided_rows.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

// Norms and rotates q and k heads, which are adjacent.
struct HeadPreparation {
  const RowBodies* bodies;
  RopePairs pairs;
  HeadRows merged;  // By row and head.
  HeadRows cos;
  HeadRows sin;
  const float* q_norm;  // Null: none.
  const float* k_norm;
  float eps;
  int query_heads;
  int heads;  // q and k heads.
  int dim;
  int half;  // Rotated pairs of a head.

  // Prepares one head into `to`, which may be its source.
  void prepare(std::ptrdiff_t row, int head, float* to) const {
    const float* from = merged.data + row * merged.row_stride + head * merged.head_stride;
    if (const float* weight = head < query_heads ? q_norm : k_norm) {
      bodies->rms_norm({from, nullptr, weight, nullptr, to}, dim, eps);
      from = to;
    }
    const auto of_row = [row](const HeadRows& angles) {
      return angles.data + row * angles.row_stride;
    };
    const auto rope = pairs == RopePairs::kHalves ? bodies->rope : bodies->rope_neighbours;
    rope({from, of_row(cos), of_row(sin), to}, half, dim);
  }

  // Prepares all heads into out [rows, stride], which may be the merged rows themselves.
  void operator()(int rows, float* out, std::ptrdiff_t stride) const {
    each_row(rows * heads, 6L * dim, [&](int index) {
      const int row = index / heads;
      const int head = index % heads;
      prepare(row, head, out + row * stride + std::ptrdiff_t{head} * dim);
    });
  }
};

// Computes heads from number `first` on when attention reads them, since long prefills are bound by
// memory bandwidth.
class PreparedHeads : public HeadProducer {
 public:
  PreparedHeads(const HeadPreparation& preparation, int first)
      : preparation_(preparation), first_(first) {}

  void make(std::ptrdiff_t row, int head, float* to) const override {
    const HeadRows& merged = preparation_.merged;
    const float* ahead = merged.data + (row + kHeadRowsAhead) * merged.row_stride +
                         (first_ + head) * merged.head_stride;
    for (int d = 0; d < preparation_.dim; d += kLanes) {
      __builtin_prefetch(ahead + d, 0, 2);
    }
    preparation_.prepare(row, first_ + head, to);
  }

 private:
  const HeadPreparation& preparation_;
  int first_;
};

// One run on a pass's rows, with its inputs resolved.
class MergedRun {
 public:
  MergedRun(const MergedAttention& attention, std::span<const mx::array> inputs, float* out)
      : attention_(attention), cos_(inputs[0]), sin_(inputs[1]), out_(out) {
    if (attention.has_norms) {
      q_norm_.emplace(inputs[2]);
      k_norm_.emplace(inputs[3]);
    }
  }

  HeadPreparation preparation_of(const HeadRows& merged) {
    const AttendShape& of = attention_.plan->shape;
    return {
        .bodies = attention_.bodies,
        .pairs = attention_.pairs,
        .merged = {merged.data, merged.row_stride, of.head_dim},
        .cos = cos_.resolve(),
        .sin = sin_.resolve(),
        .q_norm = q_norm_ ? q_norm_->resolve().data : nullptr,
        .k_norm = k_norm_ ? k_norm_->resolve().data : nullptr,
        .eps = attention_.eps,
        .query_heads = of.heads,
        .heads = of.heads + attention_.plan->kv_heads,
        .dim = of.head_dim,
        .half = cos_.width(),
    };
  }

  // Many rows.
  void run(const HeadPreparation& prepare, int rows) {
    const PreparedHeads queries(prepare, 0);
    const PreparedHeads keys(prepare, prepare.query_heads);
    const HeadRows q{.made = &queries};
    const HeadRows k{.made = &keys};
    run_attention(*attention_.plan, q, PagedRows{k, values_of(prepare), rows}, out_);
  }

  // Few rows: the heads of q and k are prepared in `ready` [rows, stride].
  void run(const HeadPreparation& prepare, int rows, float* ready, std::ptrdiff_t stride) {
    prepare(rows, ready, stride);
    const std::ptrdiff_t dim = prepare.dim;
    const HeadRows q{ready, stride, dim};
    const HeadRows k{ready + prepare.query_heads * dim, stride, dim};
    run_attention(*attention_.plan, q, PagedRows{k, values_of(prepare), rows}, out_);
  }

 private:
  // The values, which follow the heads of q and k.
  HeadRows values_of(const HeadPreparation& prepare) const {
    const std::ptrdiff_t before = std::ptrdiff_t{prepare.heads} * prepare.dim;
    return {
        prepare.merged.data + before,
        prepare.merged.row_stride,
        attention_.plan->shape.value_head_dim
    };
  }

  const MergedAttention& attention_;
  StridedRows cos_;
  StridedRows sin_;
  std::optional<StridedRows> q_norm_;
  std::optional<StridedRows> k_norm_;
  float* out_;
};

// Inputs: those of merged_inputs(), then the merged rows. Output: [N, H * D].
struct MergedBody {
  MergedAttention attention;

  std::function<void()> operator()(
      const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs
  ) const {
    return [attention = attention,
            inputs = std::vector<mx::array>(inputs.begin(), inputs.end() - 1),
            merged = StridedRows(inputs.back()),
            out = outputs[0].data<float>()]() mutable {
      attention.read(inputs, merged.resolve(), merged.rows(), out);
    };
  }
};

std::shared_ptr<const AttendPlan> plan_of(
    const MergedHeads& heads, const std::vector<AttendSpan>& spans, const AttendOptions& options
) {
  AttendPlan plan = plan_attention(heads.query_heads, spans, options);
  add_writes(plan, spans);
  return std::make_shared<const AttendPlan>(std::move(plan));
}

}  // namespace

MergedAttention::MergedAttention(
    const MergedHeads& heads, const std::vector<AttendSpan>& spans, const AttendOptions& options
)
    : plan(plan_of(heads, spans, options)),
      bodies(kernel_table().rows),
      pairs(heads.pairs),
      has_norms(heads.norms.has_value()),
      eps(heads.norms ? heads.norms->eps : 0.0F) {}

int MergedAttention::merged_width() const {
  return (plan->shape.heads + 2 * plan->kv_heads) * plan->shape.head_dim;
}

int MergedAttention::attended_width() const {
  return plan->shape.heads * plan->shape.value_head_dim;
}

void MergedAttention::read(
    std::span<const mx::array> inputs, const HeadRows& merged, int count, float* out
) const {
  MergedRun run(*this, inputs, out);
  const HeadPreparation prepare = run.preparation_of(merged);
  if (count > kRowsPreparedAlone) {
    run.run(prepare, count);
    return;
  }
  mx::array ready = memory_for({count, plan->shape.heads + plan->kv_heads, plan->shape.head_dim});
  run.run(prepare, count, ready.data<float>(), ready.strides()[0]);
}

void MergedAttention::overwrite(
    std::span<const mx::array> inputs, float* merged, int count, float* out
) const {
  MergedRun run(*this, inputs, out);
  const int width = merged_width();
  const HeadPreparation prepare = run.preparation_of({merged, width, 0});
  if (count > kRowsPreparedAlone) {
    run.run(prepare, count);
  } else {
    run.run(prepare, count, merged, width);
  }
}

std::vector<mx::array> merged_inputs(const MergedHeads& heads) {
  std::vector<mx::array> inputs = {heads.cos, heads.sin};
  if (heads.norms) {
    inputs.insert(inputs.end(), {heads.norms->q, heads.norms->k});
  }
  for (mx::array& input : inputs) {
    input = mx::astype(input, mx::float32);
  }
  return inputs;
}

mx::array attend_merged_paged(
    const mx::array& merged,
    const MergedHeads& heads,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
) {
  const MergedAttention attention(heads, spans, options);
  std::vector<mx::array> inputs = merged_inputs(heads);
  inputs.push_back(mx::astype(merged, mx::float32));
  const mx::Shape shape = {merged.shape(0), attention.attended_width()};
  return cpu_operation("SakerAttendMerged", shape, std::move(inputs), MergedBody{attention});
}

}  // namespace saker::kernels

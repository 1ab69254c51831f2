// SPDX-License-Identifier: Apache-2.0

// Attention from a merged projection. One task computes the projection if that has not begun, norms
// and rotates the heads, then attends like attend_paged.

#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/row_bodies.h"
#include "saker/kernels/layout/row_tiles.h"
#include "saker/kernels/ops/attend_paths.h"
#include "saker/kernels/ops/attend_plan.h"
#include "saker/kernels/ops/cpu_operation.h"
#include "saker/kernels/ops/linear_task.h"
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
    bodies->rope({from, of_row(cos), of_row(sin), to}, half, dim);
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

// The task after the projection, on its rows [N, (H + 2 H_kv) D].
struct MergedTask {
  std::shared_ptr<const AttendPlan> plan;
  float eps;
  StridedRows cos;
  StridedRows sin;
  std::optional<StridedRows> q_norm;
  std::optional<StridedRows> k_norm;
  float* out;

  // Leaves the merged rows unchanged.
  void operator()(const HeadRows& merged, int rows) {
    if (rows > kRowsPreparedAlone) {
      run(preparation_of(merged), rows);
      return;
    }
    const int heads = plan->shape.heads + plan->kv_heads;
    mx::array ready = memory_for({rows, heads, plan->shape.head_dim});
    run(preparation_of(merged), rows, ready.data<float>(), ready.strides()[0]);
  }

  // Overwrites the merged rows.
  void operator()(float* merged, std::ptrdiff_t stride, int rows) {
    const HeadPreparation prepare = preparation_of({merged, stride, 0});
    if (rows > kRowsPreparedAlone) {
      run(prepare, rows);
    } else {
      run(prepare, rows, merged, stride);
    }
  }

 private:
  HeadPreparation preparation_of(const HeadRows& merged) {
    const AttendShape& of = plan->shape;
    return {
        .bodies = kernel_table().rows,
        .merged = {merged.data, merged.row_stride, of.head_dim},
        .cos = cos.resolve(),
        .sin = sin.resolve(),
        .q_norm = q_norm ? q_norm->resolve().data : nullptr,
        .k_norm = k_norm ? k_norm->resolve().data : nullptr,
        .eps = eps,
        .query_heads = of.heads,
        .heads = of.heads + plan->kv_heads,
        .dim = of.head_dim,
        .half = cos.width(),
    };
  }

  // The values, which follow the heads of q and k.
  HeadRows values_of(const HeadPreparation& prepare) const {
    const std::ptrdiff_t before = std::ptrdiff_t{prepare.heads} * prepare.dim;
    return {prepare.merged.data + before, prepare.merged.row_stride, plan->shape.value_head_dim};
  }

  // Many rows.
  void run(const HeadPreparation& prepare, int rows) {
    const PreparedHeads queries(prepare, 0);
    const PreparedHeads keys(prepare, prepare.query_heads);
    const HeadRows q{.made = &queries};
    const HeadRows k{.made = &keys};
    run_attention(*plan, q, PagedRows{k, values_of(prepare), rows}, out);
  }

  // Few rows: the heads of q and k are prepared in `ready` [rows, stride].
  void run(const HeadPreparation& prepare, int rows, float* ready, std::ptrdiff_t stride) {
    prepare(rows, ready, stride);
    const std::ptrdiff_t dim = prepare.dim;
    const HeadRows q{ready, stride, dim};
    const HeadRows k{ready + prepare.query_heads * dim, stride, dim};
    run_attention(*plan, q, PagedRows{k, values_of(prepare), rows}, out);
  }
};

// Inputs: cos, sin, the norms of q and k if any, then merged or, with a GEMM, its inputs. Output:
// [N, H * D].
struct MergedBody {
  static constexpr bool kFusableIntoGemm = true;

  std::shared_ptr<const AttendPlan> plan;
  bool has_norms;
  float eps;
  int rows;
  std::optional<LinearBody> product;

  std::function<void()> operator()(
      const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs
  ) const {
    const auto norm = [&](int i) {
      return has_norms ? std::optional(StridedRows(inputs[i])) : std::nullopt;
    };
    MergedTask task{
        plan,
        eps,
        StridedRows(inputs[0]),
        StridedRows(inputs[1]),
        norm(2),
        norm(3),
        outputs[0].data<float>(),
    };
    const auto rest = std::span(inputs).subspan(has_norms ? 4 : 2);
    if (!product) {
      return [task = std::move(task), merged = StridedRows(rest[0])]() mutable {
        task(merged.resolve(), merged.rows());
      };
    }
    const int width = (plan->shape.heads + 2 * plan->kv_heads) * plan->shape.head_dim;
    mx::array merged = memory_for({rows, width});
    return [task = std::move(task),
            multiply = product->start(rest, merged.data<float>()),
            merged,
            rows = rows,
            width]() mutable {
      multiply();
      task(merged.data<float>(), width, rows);
    };
  }
};

}  // namespace

mx::array attend_merged_paged(
    const mx::array& merged,
    const MergedHeads& heads,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
) {
  AttendPlan made = plan_attention(heads.query_heads, spans, options);
  add_writes(made, spans);
  std::vector<mx::array> inputs = {heads.cos, heads.sin};
  if (heads.norms) {
    inputs.insert(inputs.end(), {heads.norms->q, heads.norms->k});
  }
  for (mx::array& input : inputs) {
    input = mx::astype(input, mx::float32);
  }
  const auto rows = mx::astype(merged, mx::float32);
  auto product = deferred_gemm(rows);
  const std::vector<mx::array> last = product ? std::move(product->inputs) : std::vector{rows};
  inputs.insert(inputs.end(), last.begin(), last.end());
  mx::Shape shape = {merged.shape(0), heads.query_heads * made.shape.value_head_dim};
  MergedBody body{
      std::make_shared<const AttendPlan>(std::move(made)),
      heads.norms.has_value(),
      heads.norms ? heads.norms->eps : 0.0F,
      merged.shape(0),
      product ? std::optional(std::move(product->body)) : std::nullopt,
  };
  return cpu_operation("SakerAttendMerged", std::move(shape), std::move(inputs), std::move(body));
}

}  // namespace saker::kernels

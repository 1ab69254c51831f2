// SPDX-License-Identifier: Apache-2.0

// Attention from a joined projection: one task norms and rotates the heads, then does what
// attend_paged does.

#include "saker/kernels/attend_paths.h"
#include "saker/kernels/attend_plan.h"
#include "saker/kernels/cpu/dispatch.h"
#include "saker/kernels/cpu/row_bodies.h"
#include "saker/kernels/cpu_operation.h"
#include "saker/kernels/row_tiles.h"
#include "saker/kernels/strided_rows.h"

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

// Brings rows of q and k heads, which lie side by side, into memory of their own [N, heads, D].
struct HeadPreparation {
  const RowBodies* bodies;
  HeadRows joined;  // Row by row and head by head.
  HeadRows cos;
  HeadRows sin;
  const float* q_norm;  // Null: none.
  const float* k_norm;
  float eps;
  int query_heads;
  int heads;  // Of q and k together.
  int dim;
  int half;  // Rotated pairs of a head.

  void operator()(int rows, float* out) const {
    each_row(rows * heads, 6L * dim, [&](int index) {
      const int row = index / heads;
      const int head = index % heads;
      const float* from = StridedRows::at(joined, row, head);
      float* to = out + static_cast<std::ptrdiff_t>(index) * dim;
      if (const float* weight = head < query_heads ? q_norm : k_norm) {
        bodies->rms_norm({from, nullptr, weight, nullptr, to}, dim, eps);
        from = to;
      }
      const RopeRow task{from, StridedRows::at(cos, row, 0), StridedRows::at(sin, row, 0), to};
      bodies->rope(task, half, dim);
    });
  }
};

// Inputs joined, cos, sin and, where there are norms, those of q and k; output [N, H * D].
struct JoinedBody {
  std::shared_ptr<const AttendPlan> plan;
  float eps;

  auto operator()(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) const {
    const int heads = plan->shape.heads + plan->layout.kv_heads;
    mx::array ready({inputs[0].shape(0), heads, plan->shape.head_dim}, mx::float32, nullptr, {});
    ready.set_data(mx::allocator::malloc(ready.nbytes()));
    const bool has_norms = inputs.size() > 3;
    return [plan = plan,
            eps = eps,
            ready,
            joined = StridedRows(inputs[0]),
            cos = StridedRows(inputs[1]),
            sin = StridedRows(inputs[2]),
            q_norm = has_norms ? std::optional(StridedRows(inputs[3])) : std::nullopt,
            k_norm = has_norms ? std::optional(StridedRows(inputs[4])) : std::nullopt,
            out = outputs[0].data<float>()]() mutable {
      const AttendShape& of = plan->shape;
      const HeadRows rows = joined.resolve();
      const HeadPreparation prepare{
          .bodies = kernel_table().rows,
          .joined = {rows.data, rows.row_stride, of.head_dim},
          .cos = cos.resolve(),
          .sin = sin.resolve(),
          .q_norm = q_norm ? q_norm->resolve().data : nullptr,
          .k_norm = k_norm ? k_norm->resolve().data : nullptr,
          .eps = eps,
          .query_heads = of.heads,
          .heads = of.heads + plan->layout.kv_heads,
          .dim = of.head_dim,
          .half = cos.width(),
      };
      float* data = ready.data<float>();
      prepare(joined.rows(), data);
      const std::ptrdiff_t stride = std::ptrdiff_t{prepare.heads} * of.head_dim;
      const HeadRows q{data, stride, of.head_dim};
      const HeadRows k{data + std::ptrdiff_t{of.heads} * of.head_dim, stride, of.head_dim};
      const HeadRows v{rows.data + stride, rows.row_stride, of.value_head_dim};
      run_attention(*plan, q, PagedRows{k, v, joined.rows()}, out);
    };
  }
};

}  // namespace

mx::array attend_joined_paged(
    const mx::array& joined,
    const JoinedHeads& heads,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
) {
  AttendPlan made = plan_attention(heads.query_heads, spans, options);
  add_writes(made, spans);
  std::vector<mx::array> inputs = {joined, heads.cos, heads.sin};
  if (heads.norms) {
    inputs.insert(inputs.end(), {heads.norms->q, heads.norms->k});
  }
  for (mx::array& input : inputs) {
    input = mx::astype(input, mx::float32);
  }
  mx::Shape shape = {joined.shape(0), heads.query_heads * made.shape.value_head_dim};
  JoinedBody body{
      std::make_shared<const AttendPlan>(std::move(made)), heads.norms ? heads.norms->eps : 0.0F
  };
  return cpu_operation("SakerAttendJoined", std::move(shape), std::move(inputs), std::move(body));
}

}  // namespace saker::kernels

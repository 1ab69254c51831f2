// SPDX-License-Identifier: Apache-2.0

// Attention from MLX's own operations: the reference in tests, and the path on devices without our
// bodies.

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/ops/attend.h"
#include "saker/kernels/ops/attend_paths.h"
#include "saker/kernels/ops/rope.h"
#include "saker/kernels/storage/kv_storage.h"

#include <limits>
#include <optional>
#include <string>
#include <utility>

namespace saker::kernels {
namespace {

mx::array int_range(std::int64_t begin, std::int64_t end) {
  return mx::arange(static_cast<double>(begin), static_cast<double>(end), 1.0, mx::int32);
}

// q [n, H, D], keys [H_kv, S, D], values [H_kv, S, D_v], mask [n, S] (true: seen) -> [n, H, D_v].
// Runs step by step in float32.
mx::array composed(
    const mx::array& q,
    const mx::array& keys,
    const mx::array& values,
    const mx::array& mask,
    const AttendOptions& options
) {
  const int n = q.shape(0);
  const int heads = q.shape(1);
  const int kv_heads = keys.shape(0);
  const int group = heads / kv_heads;
  auto rows = mx::transpose(mx::astype(q, mx::float32), {1, 0, 2});  // [H, n, D]
  rows = mx::reshape(rows, {kv_heads, group * n, q.shape(2)});
  auto turned = mx::transpose(mx::astype(keys, mx::float32), {0, 2, 1});  // [H_kv, D, S]
  auto scores = mx::matmul(rows, turned) * mx::array(options.scale);      // [H_kv, group * n, S]
  if (options.softcap > 0) {
    const mx::array cap(options.softcap);
    scores = cap * mx::tanh(scores / cap);
  }
  scores = mx::reshape(scores, {kv_heads, group, n, keys.shape(1)});
  const mx::array nothing(-std::numeric_limits<float>::infinity());
  scores = mx::where(mask, scores, nothing);
  if (options.sinks) {
    const auto sinks = mx::reshape(*options.sinks, {kv_heads, group, 1, 1});
    scores = mx::concatenate({scores, mx::broadcast_to(sinks, {kv_heads, group, n, 1})}, -1);
  }
  auto weights = mx::softmax(scores, -1, true);
  weights = mx::slice(weights, {0, 0, 0, 0}, {kv_heads, group, n, keys.shape(1)});
  weights = mx::reshape(weights, {kv_heads, group * n, keys.shape(1)});
  auto out = mx::matmul(weights, mx::astype(values, mx::float32));  // [H_kv, group * n, D_v]
  out = mx::reshape(out, {heads, n, values.shape(2)});
  return mx::astype(mx::transpose(out, {1, 0, 2}), q.dtype());
}

// A mask [n, S]: true where the row at first_position + i sees a position of `positions`.
mx::array mask_of(
    const mx::array& positions,
    std::int64_t first_position,
    int row_count,
    const Visibility& visible
) {
  const auto row = mx::expand_dims(int_range(first_position, first_position + row_count), 1);
  const auto key = mx::expand_dims(mx::astype(positions, mx::int32), 0);
  auto mask = key <= row;
  if (visible.span_end > 0) {
    mask = key < mx::array(static_cast<int>(visible.span_end));
    if (visible.model_window > 0) {
      mask = mask && key < row + mx::array(static_cast<int>(visible.model_window));
    }
  }
  const auto in_window = [&](std::int64_t window) {
    return key > row - mx::array(static_cast<int>(window));
  };
  if (visible.cache_window > 0) {
    mask = mask &&
           (key < mx::array(static_cast<int>(visible.keep)) || in_window(visible.cache_window));
  }
  if (visible.model_chunk > 0) {
    const mx::array chunk(static_cast<int>(visible.model_chunk));
    mask = mask && mx::equal(mx::floor_divide(key, chunk), mx::floor_divide(row, chunk));
  }
  return visible.model_window > 0 ? mask && in_window(visible.model_window) : mask;
}

// The stored rows that a span can see, oldest first.
struct Rows {
  mx::array keys;       // [1, H_kv, S, D]
  mx::array values;     // [1, H_kv, S, D_v]
  mx::array positions;  // [S]
};

Rows visible_rows(const KvBuffer& buffer, const VisibleKeys& first, std::int64_t end) {
  Rows rows{
      buffer.keys(first.begin, end), buffer.values(first.begin, end), int_range(first.begin, end)
  };
  if (first.keep_begin < first.keep_end) {
    const auto join = [](const mx::array& head, const mx::array& tail, int axis) {
      return mx::concatenate({head, tail}, axis);
    };
    rows.keys = join(buffer.keys(first.keep_begin, first.keep_end), rows.keys, 2);
    rows.values = join(buffer.values(first.keep_begin, first.keep_end), rows.values, 2);
    rows.positions = join(int_range(first.keep_begin, first.keep_end), rows.positions, 0);
  }
  return rows;
}

}  // namespace

mx::array attend_reference(
    const mx::array& q,
    const mx::array& keys,
    const mx::array& values,
    const mx::array& positions,
    std::int64_t first_position,
    const AttendOptions& options
) {
  const std::int64_t end = first_position + q.shape(0);
  const Visibility visible{
      .model_window = options.window,
      .model_chunk = options.chunk,
      .span_end = options.bidirectional ? end : 0
  };
  return composed(
      q, keys, values, mask_of(positions, first_position, q.shape(0), visible), options
  );
}

mx::array attend_contiguous(
    const mx::array& q,
    const std::optional<NewRows>& new_rows,
    const AttendSpan& span,
    const AttendOptions& options
) {
  KvBuffer& buffer = *span.store->storage().buffer();
  const std::int64_t end = span.first_position + span.row_count;
  const Visibility visible = visibility(span, options);
  const VisibleKeys first = visible.at(span.first_position);
  const VisibleKeys last = visible.at(end - 1);
  require(
      buffer.begin() <= first.keep_begin && end <= buffer.end() && end <= INT32_MAX,
      ErrorCode::kInternal,
      "attend: rows {} to {} are not in the store",
      first.keep_begin,
      end
  );
  if (new_rows) {
    buffer.write(span.first_position, new_rows->k, new_rows->v);
  }
  const Rows rows = visible_rows(buffer, first, end);
  // These need no mask array. One row sees all the rows it was given. Several rows, if no window
  // cuts them, see all rows up to their own or to the span's end.
  const bool one_row = span.row_count == 1;
  const bool plain = last.begin == first.begin && first.keep_begin == first.keep_end;
  const bool all = one_row || (options.bidirectional && plain && first.end == end);
  const bool causal = plain && !options.bidirectional;
  std::optional<mx::array> mask;
  if (options.softcap > 0 || !(all || causal)) {
    mask = mask_of(rows.positions, span.first_position, span.row_count, visible);
  }
  if (options.softcap > 0) {
    const auto by_row = mx::transpose(mx::squeeze(q, 0), {1, 0, 2});
    const auto out =
        composed(by_row, mx::squeeze(rows.keys, 0), mx::squeeze(rows.values, 0), *mask, options);
    return mx::expand_dims(mx::transpose(out, {1, 0, 2}), 0);
  }
  // A GPU sums in float32 for any dtype of rows. With wider queries MLX would widen all rows.
  const bool gpu = mlx_device() == mx::Device::gpu;
  const auto queries = gpu ? mx::astype(q, rows.keys.dtype()) : q;
  const std::string mode = mask.has_value() ? "array" : all ? "" : "causal";
  std::optional<mx::array> sinks;
  if (options.sinks) {
    sinks = mx::astype(*options.sinks, mx::result_type(queries, rows.keys, rows.values));
  }
  const auto out = mx::fast::scaled_dot_product_attention(
      queries, rows.keys, rows.values, options.scale, mode, mask, sinks
  );
  return mx::astype(out, q.dtype());
}

mx::array attend_merged_contiguous(
    const mx::array& merged,
    const MergedHeads& heads,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
) {
  const int dim = heads.head_dim;
  const int turned_heads = heads.query_heads + heads.kv_heads;
  const auto all = mx::reshape(merged, {merged.shape(0), 1, turned_heads + heads.kv_heads, dim});
  auto turned = mx::slice(all, {0, 0, 0, 0}, {all.shape(0), 1, turned_heads, dim});
  std::optional<HeadWeights> weights;
  if (heads.norms) {
    turned = mx::fast::rms_norm(turned, std::nullopt, heads.norms->eps);
    const MergedHeads::Norms& norms = *heads.norms;
    weights = norms.by_head ? norms.by_head
                            : weights_of_heads(norms.q, heads.query_heads, norms.k, heads.kv_heads);
  }
  turned = rope_plain(turned, weights, heads.cos, heads.sin, heads.pairs);
  // Rows and heads of x [N, 1, heads, D] by head: [1, heads, n, D]. The 1 is where its stride does
  // not depend on N, because cuDNN makes a plan per set of strides.
  const auto part = [&](const mx::array& x, const AttendSpan& span, int first, int end) {
    const int end_row = span.first_row + span.row_count;
    const auto rows = mx::slice(x, {span.first_row, 0, first, 0}, {end_row, 1, end, dim});
    return mx::transpose(rows, {1, 2, 0, 3});
  };
  std::vector<mx::array> attended;
  attended.reserve(spans.size());
  for (const AttendSpan& span : spans) {
    const NewRows rows{
        part(turned, span, heads.query_heads, turned_heads),
        part(all, span, turned_heads, all.shape(2)),
    };
    const auto q = part(turned, span, 0, heads.query_heads);
    const auto out = mx::transpose(attend_contiguous(q, rows, span, options), {0, 2, 1, 3});
    attended.push_back(mx::reshape(out, {span.row_count, heads.query_heads * dim}));
  }
  return attended.size() == 1 ? attended.front() : mx::concatenate(attended, 0);
}

}  // namespace saker::kernels

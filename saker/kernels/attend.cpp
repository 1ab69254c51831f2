// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/attend.h"

#include "saker/base/error.h"
#include "saker/kernels/attend_paths.h"
#include "saker/kernels/kv_storage.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace saker::kernels {
namespace {

void check_arrays(const mx::array& q, const mx::array& k, const mx::array& v) {
  require(
      q.ndim() == 3 && k.ndim() == 3 && v.ndim() == 3,
      ErrorCode::kInvalidArgument,
      "attend: q, k and v must have 3 dimensions, got {}, {} and {}",
      q.ndim(),
      k.ndim(),
      v.ndim()
  );
  const bool rows_agree = q.shape(0) >= 1 && q.shape(0) == k.shape(0) && q.shape(0) == v.shape(0);
  const bool heads_agree = k.shape(1) >= 1 && k.shape(1) == v.shape(1) && q.shape(1) >= 1 &&
                           q.shape(1) % k.shape(1) == 0 && q.shape(2) == k.shape(2);
  require(
      rows_agree && heads_agree,
      ErrorCode::kInvalidArgument,
      "attend: q [{}, {}, {}], k [{}, {}, {}] and v [{}, {}, {}] do not fit together",
      q.shape(0),
      q.shape(1),
      q.shape(2),
      k.shape(0),
      k.shape(1),
      k.shape(2),
      v.shape(0),
      v.shape(1),
      v.shape(2)
  );
}

void check_spans(
    const mx::array& k,
    const mx::array& v,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
) {
  std::int64_t next_row = 0;
  for (const AttendSpan& span : spans) {
    require(
        span.first_row == next_row && span.row_count >= 1 && span.row_count <= k.shape(0),
        ErrorCode::kInvalidArgument,
        "attend: a span has {} rows from {}, expected at least 1 from {}",
        span.row_count,
        span.first_row,
        next_row
    );
    next_row += span.row_count;
    require(
        span.first_position >= 0 && span.first_position < INT64_MAX - span.row_count &&
            span.window >= 0 && span.keep >= 0 && options.window >= 0,
        ErrorCode::kInvalidArgument,
        "attend: position {}, windows {} and {} or keep {} is negative or too large",
        span.first_position,
        span.window,
        options.window,
        span.keep
    );
    require(span.store != nullptr, ErrorCode::kInvalidArgument, "attend: a span has no store");
    const KvShape& shape = span.store->shape();
    require(
        shape.kv_heads == k.shape(1) && shape.head_dim == k.shape(2) &&
            shape.value_head_dim == v.shape(2) && shape.dtype == spans[0].store->shape().dtype,
        ErrorCode::kInvalidArgument,
        "attend: a store of {} kv heads of {} and {} does not fit keys [{}, {}] and values [{}, "
        "{}]",
        shape.kv_heads,
        shape.head_dim,
        shape.value_head_dim,
        k.shape(1),
        k.shape(2),
        v.shape(1),
        v.shape(2)
    );
  }
  require(
      next_row == k.shape(0),
      ErrorCode::kInvalidArgument,
      "attend: spans hold {} rows, expected {}",
      next_row,
      k.shape(0)
  );
}

mx::array rows_of(const mx::array& x, int first_row, int row_count) {
  return mx::slice(x, {first_row, 0, 0}, {first_row + row_count, x.shape(1), x.shape(2)});
}

mx::array rows_of(const mx::array& x, const AttendSpan& span) {
  return rows_of(x, span.first_row, span.row_count);
}

mx::array joined(const std::vector<mx::array>& parts) {
  return parts.size() == 1 ? parts[0] : mx::concatenate(parts, 0);
}

// One operation for each run of spans whose pages have the same form.
mx::array attend_pages(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
) {
  std::vector<mx::array> parts;
  for (auto begin = spans.begin(); begin != spans.end();) {
    const int bits = begin->store->shape().bits;
    const auto end = std::find_if(begin, spans.end(), [&](const AttendSpan& span) {
      return span.store->shape().bits != bits;
    });
    const int first_row = begin->first_row;
    const int row_count = (end - 1)->first_row + (end - 1)->row_count - first_row;
    std::vector<AttendSpan> run(begin, end);
    for (AttendSpan& span : run) {
      span.first_row -= first_row;
    }
    const auto rows = [&](const mx::array& x) {
      return row_count == x.shape(0) ? x : rows_of(x, first_row, row_count);
    };
    parts.push_back(attend_paged(rows(q), rows(k), rows(v), run, options));
    begin = end;
  }
  return joined(parts);
}

}  // namespace

VisibleKeys Visibility::at(std::int64_t position) const {
  VisibleKeys keys;
  keys.end = position + 1;
  const std::int64_t model_begin =
      model_window > 0 ? std::max<std::int64_t>(0, keys.end - model_window) : 0;
  keys.begin = cache_window > 0 ? std::max(model_begin, keys.end - cache_window) : model_begin;
  if (keep >= keys.begin) {
    keys.begin = model_begin;
  }
  keys.keep_begin = std::min(model_begin, keys.begin);
  keys.keep_end = std::max(keys.keep_begin, std::min(keep, keys.begin));
  return keys;
}

Visibility visibility(const AttendSpan& span, const AttendOptions& options) {
  return {options.window, span.window, span.window > 0 ? span.keep : 0};
}

mx::array attend(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    std::vector<AttendSpan> spans,
    const AttendOptions& options
) {
  check_arrays(q, k, v);
  check_spans(k, v, spans, options);
  const bool paged = spans[0].store->storage().pages() != nullptr;
  for (const AttendSpan& span : spans) {
    require(
        (span.store->storage().pages() != nullptr) == paged,
        ErrorCode::kInvalidArgument,
        "attend: paged and contiguous stores in one pass"
    );
  }
  if (paged) {
    const auto as_float32 = [](const mx::array& x) { return mx::astype(x, mx::float32); };
    return mx::astype(
        attend_pages(as_float32(q), as_float32(k), as_float32(v), spans, options), q.dtype()
    );
  }
  std::vector<mx::array> parts;
  parts.reserve(spans.size());
  for (const AttendSpan& span : spans) {
    parts.push_back(
        attend_contiguous(rows_of(q, span), rows_of(k, span), rows_of(v, span), span, options)
    );
  }
  return joined(parts);
}

}  // namespace saker::kernels

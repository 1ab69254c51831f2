// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/attend.h"

#include "saker/base/error.h"
#include "saker/kernels/ops/attend_paths.h"
#include "saker/kernels/storage/kv_storage.h"

#include <algorithm>
#include <cstdint>
#include <optional>
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

// Checks `rows` rows whose keys and values have shape `expected`.
void check_spans(
    int rows,
    const KvShape& expected,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
) {
  std::int64_t next_row = 0;
  for (const AttendSpan& span : spans) {
    require(
        span.first_row == next_row && span.row_count >= 1 && span.row_count <= rows,
        ErrorCode::kInvalidArgument,
        "attend: a span has {} rows from {}, expected at least 1 from {}",
        span.row_count,
        span.first_row,
        next_row
    );
    next_row += span.row_count;
    require(
        span.first_position >= 0 && span.first_position < INT64_MAX - span.row_count &&
            span.window >= 0 && span.keep >= 0 && options.window >= 0 && options.chunk >= 0,
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
        shape.kv_heads == expected.kv_heads && shape.head_dim == expected.head_dim &&
            shape.value_head_dim == expected.value_head_dim &&
            shape.dtype == spans[0].store->shape().dtype,
        ErrorCode::kInvalidArgument,
        "attend: a store of {} kv heads of {} and {} does not fit keys [{}, {}] and values [{}, "
        "{}]",
        shape.kv_heads,
        shape.head_dim,
        shape.value_head_dim,
        expected.kv_heads,
        expected.head_dim,
        expected.kv_heads,
        expected.value_head_dim
    );
  }
  require(
      next_row == rows,
      ErrorCode::kInvalidArgument,
      "attend: spans hold {} rows, expected {}",
      next_row,
      rows
  );
}

void check_sinks(const AttendOptions& options, int heads) {
  require(
      !options.sinks ||
          (options.sinks->shape() == mx::Shape{heads} && options.sinks->dtype() == mx::float32),
      ErrorCode::kInvalidArgument,
      "attend: {} sinks, expected {} in float32",
      options.sinks ? options.sinks->size() : 0,
      heads
  );
}

void check_heads(const mx::array& merged, const MergedHeads& heads) {
  const int width = (heads.query_heads + 2 * heads.kv_heads) * heads.head_dim;
  require(
      merged.ndim() == 2 && merged.shape(0) >= 1 && merged.shape(1) == width,
      ErrorCode::kInvalidArgument,
      "attend: merged rows of {} elements, expected {}",
      merged.ndim() == 2 ? merged.shape(1) : 0,
      width
  );
  const mx::Shape& angles = heads.cos.shape();
  require(
      angles.size() == 2 && angles == heads.sin.shape() && angles[0] == merged.shape(0) &&
          angles[1] >= 1 && 2 * angles[1] <= heads.head_dim,
      ErrorCode::kInvalidArgument,
      "attend: rotations of {} elements do not fit {} rows of heads of {}",
      heads.cos.size(),
      merged.shape(0),
      heads.head_dim
  );
  const mx::Shape norm = {heads.head_dim};
  const mx::Shape by_head = {heads.query_heads + heads.kv_heads, 2, heads.head_dim / 2};
  require(
      !heads.norms ||
          (heads.norms->q.shape() == norm && heads.norms->k.shape() == norm &&
           (!heads.norms->by_head || heads.norms->by_head->straight.shape() == by_head)),
      ErrorCode::kInvalidArgument,
      "attend: norms that do not fit heads of {}",
      heads.head_dim
  );
}

mx::array rows_of(const mx::array& x, int first_row, int row_count) {
  return mx::slice(x, {first_row, 0, 0}, {first_row + row_count, x.shape(1), x.shape(2)});
}

mx::array rows_of(const mx::array& x, const AttendSpan& span) {
  return rows_of(x, span.first_row, span.row_count);
}

mx::array concatenated(const std::vector<mx::array>& parts) {
  return parts.size() == 1 ? parts[0] : mx::concatenate(parts, 0);
}

std::optional<NewRows> rows_of(const std::optional<NewRows>& rows, int first_row, int row_count) {
  if (!rows || row_count == rows->k.shape(0)) {
    return rows;
  }
  return NewRows{rows_of(rows->k, first_row, row_count), rows_of(rows->v, first_row, row_count)};
}

// One operation per run of spans whose pages have the same form.
mx::array attend_pages(
    const mx::array& q,
    const std::optional<NewRows>& rows,
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
    const auto queries = row_count == q.shape(0) ? q : rows_of(q, first_row, row_count);
    parts.push_back(attend_paged(queries, rows_of(rows, first_row, row_count), run, options));
    begin = end;
  }
  return concatenated(parts);
}

bool is_paged(const AttendSpan& span) {
  return span.store->storage().pages() != nullptr;
}

mx::array attend_checked(
    const mx::array& q,
    const std::optional<NewRows>& rows,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options,
    bool paged
) {
  check_sinks(options, q.shape(1));
  for (const AttendSpan& span : spans) {
    require(
        is_paged(span) == paged,
        ErrorCode::kInvalidArgument,
        "attend: paged and contiguous stores in one pass"
    );
  }
  if (paged) {
    const auto as_float32 = [](const mx::array& x) { return mx::astype(x, mx::float32); };
    std::optional<NewRows> wide;
    if (rows) {
      wide = NewRows{as_float32(rows->k), as_float32(rows->v)};
    }
    return mx::astype(attend_pages(as_float32(q), wide, spans, options), q.dtype());
  }
  const auto by_head = [](const mx::array& x) {
    return mx::expand_dims(mx::transpose(x, {1, 0, 2}), 0);
  };
  std::vector<mx::array> parts;
  parts.reserve(spans.size());
  for (const AttendSpan& span : spans) {
    auto part = rows_of(rows, span.first_row, span.row_count);
    if (part) {
      part = NewRows{by_head(part->k), by_head(part->v)};
    }
    const auto out = attend_contiguous(by_head(rows_of(q, span)), part, span, options);
    parts.push_back(mx::transpose(mx::squeeze(out, 0), {1, 0, 2}));
  }
  return concatenated(parts);
}

}  // namespace

VisibleKeys Visibility::at(std::int64_t position) const {
  VisibleKeys keys;
  const std::int64_t next = position + 1;
  const std::int64_t chunk_begin = model_chunk > 0 ? position / model_chunk * model_chunk : 0;
  const std::int64_t model_begin =
      model_window > 0 ? std::max(chunk_begin, next - model_window) : chunk_begin;
  const std::int64_t model_end = model_window > 0 ? position + model_window : INT64_MAX;
  keys.end = std::max(next, std::min(span_end, model_end));
  keys.begin = cache_window > 0 ? std::max(model_begin, next - cache_window) : model_begin;
  if (keep >= keys.begin) {
    keys.begin = model_begin;
  }
  keys.keep_begin = std::min(model_begin, keys.begin);
  keys.keep_end = std::max(keys.keep_begin, std::min(keep, keys.begin));
  return keys;
}

Visibility visibility(const AttendSpan& span, const AttendOptions& options) {
  return {
      .model_window = options.window,
      .cache_window = span.window,
      .keep = span.window > 0 ? span.keep : 0,
      .model_chunk = options.chunk,
      .span_end = options.bidirectional ? span.first_position + span.row_count : 0,
  };
}

mx::array attend(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    std::vector<AttendSpan> spans,
    const AttendOptions& options
) {
  check_arrays(q, k, v);
  const KvShape shape{.kv_heads = k.shape(1), .head_dim = k.shape(2), .value_head_dim = v.shape(2)};
  check_spans(k.shape(0), shape, spans, options);
  return attend_checked(q, NewRows{k, v}, spans, options, is_paged(spans[0]));
}

bool attends_merged(const std::vector<AttendSpan>& spans) {
  return !spans.empty() && std::ranges::all_of(spans, [&](const AttendSpan& span) {
    return span.store != nullptr && is_paged(span) == is_paged(spans[0]) &&
           span.store->shape().bits == spans[0].store->shape().bits;
  });
}

bool attends_pages(const std::vector<AttendSpan>& spans) {
  return attends_merged(spans) && is_paged(spans[0]);
}

void check_merged(
    const mx::array& merged,
    const MergedHeads& heads,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
) {
  check_heads(merged, heads);
  check_sinks(options, heads.query_heads);
  require(
      attends_merged(spans),
      ErrorCode::kInvalidArgument,
      "attend: merged heads need stores of one form"
  );
  const KvShape shape{
      .kv_heads = heads.kv_heads, .head_dim = heads.head_dim, .value_head_dim = heads.head_dim
  };
  check_spans(merged.shape(0), shape, spans, options);
  require(
      is_paged(spans[0]) || !heads.norms || heads.head_dim % 2 == 0,
      ErrorCode::kInvalidArgument,
      "attend: normed heads of {} over contiguous stores, expected an even number",
      heads.head_dim
  );
}

mx::array attend_merged(
    const mx::array& merged,
    const MergedHeads& heads,
    const std::vector<AttendSpan>& spans,
    const AttendOptions& options
) {
  check_merged(merged, heads, spans, options);
  return is_paged(spans[0]) ? attend_merged_paged(merged, heads, spans, options)
                            : attend_merged_contiguous(merged, heads, spans, options);
}

mx::array attend_stored(
    const mx::array& q, std::vector<AttendSpan> spans, const AttendOptions& options
) {
  require(
      q.ndim() == 3 && q.shape(0) >= 1 && !spans.empty() && spans[0].store != nullptr,
      ErrorCode::kInvalidArgument,
      "attend: q of {} dimensions and {} spans",
      q.ndim(),
      spans.size()
  );
  const KvShape& shape = spans[0].store->shape();
  require(
      q.shape(2) == shape.head_dim && q.shape(1) >= 1 && q.shape(1) % shape.kv_heads == 0,
      ErrorCode::kInvalidArgument,
      "attend: q [{}, {}, {}] does not fit stored rows of {} kv heads of {}",
      q.shape(0),
      q.shape(1),
      q.shape(2),
      shape.kv_heads,
      shape.head_dim
  );
  check_spans(q.shape(0), shape, spans, options);
  return attend_checked(q, std::nullopt, spans, options, is_paged(spans[0]));
}

}  // namespace saker::kernels

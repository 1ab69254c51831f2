// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/attend_runs.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace saker::kernels {

mx::array random_sinks(const AttendCase& c) {
  auto sinks = mx::random::normal(
      {c.kv_heads * c.group}, mx::float32, 0.0F, 3.0F, mx::random::key(c.seed + 99)
  );
  mx::eval(sinks);
  return sinks;
}

AttendCase random_case(int max_rows) {
  AttendCase c;
  c.kv_heads = *rc::gen::inRange(1, 4);
  c.group = *rc::gen::element(1, 2, 3, 4, 7, 8);
  c.head_dim = *rc::gen::element(10, 13, 16, 64, 80, 96, 128, 256);
  c.value_head_dim = *rc::gen::element(c.head_dim, 1, 17, 48);
  c.dtype = *rc::gen::element(mx::bfloat16, mx::bfloat16, mx::float32);
  c.bits = *rc::gen::element(16, 16, 8, 4);
  c.options.scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim));
  c.options.softcap = *rc::gen::element(0.0F, 0.0F, 5.0F);
  c.options.window = *rc::gen::element(0, 0, 1, 8, 64, 100);
  c.options.chunk = *rc::gen::element(0, 0, 0, 7, 64, 100);
  c.cache_window = *rc::gen::element(0, 0, 5, 70, 128);
  c.keep = *rc::gen::element(0, 4, 66);
  c.rows = *rc::gen::inRange(1, max_rows);
  c.seed = *rc::gen::inRange(0, 1 << 20);
  if (*rc::gen::element(false, false, true)) {
    c.options.sinks = random_sinks(c);
  }
  return c;
}

void use_random_machine() {
  select_instruction_set(*rc::gen::elementOf(instruction_sets()));
  set_threads(*rc::gen::inRange(1, 5));
}

AttendInputs random_inputs(const AttendCase& c) {
  const auto normal = [&](int heads, int width, std::uint64_t stream) {
    return mx::random::normal(
        {c.rows, heads, width}, mx::float32, mx::random::key(c.seed * 3 + stream)
    );
  };
  AttendInputs inputs{
      normal(c.kv_heads * c.group, c.head_dim, 0) * mx::array(3.0F),
      normal(c.kv_heads, c.head_dim, 1),
      normal(c.kv_heads, c.value_head_dim, 2),
  };
  if (c.values_in_keys) {
    inputs.v = mx::slice(inputs.k, {0, 0, 0}, {c.rows, c.kv_heads, c.value_head_dim});
  }
  mx::eval(inputs.q, inputs.k, inputs.v);
  return inputs;
}

AttendInputs part_of(const AttendInputs& inputs, int first, int count) {
  const auto rows = [&](const mx::array& x) {
    return mx::slice(x, {first, 0, 0}, {first + count, x.shape(1), x.shape(2)});
  };
  return {rows(inputs.q), rows(inputs.k), rows(inputs.v)};
}

AttendInputs joined(const std::vector<AttendInputs>& parts) {
  std::vector<mx::array> q;
  std::vector<mx::array> k;
  std::vector<mx::array> v;
  for (const AttendInputs& part : parts) {
    q.push_back(part.q);
    k.push_back(part.k);
    v.push_back(part.v);
  }
  return {mx::concatenate(q, 0), mx::concatenate(k, 0), mx::concatenate(v, 0)};
}

AttendSpan span_of(
    const AttendCase& c,
    int first_row,
    int count,
    std::int64_t position,
    std::shared_ptr<KvStore> store
) {
  return {first_row, count, position, std::move(store), c.cache_window, c.keep};
}

std::vector<float> floats_of(const mx::array& x) {
  auto dense = mx::contiguous(mx::astype(x, mx::float32));
  mx::eval(dense);
  return {dense.data<float>(), dense.data<float>() + dense.size()};
}

std::vector<float> run_in_parts(
    const AttendCase& c, const std::vector<int>& sizes, KvLayout layout
) {
  const AttendInputs inputs = random_inputs(c);
  auto store = std::make_shared<KvStore>(c.shape(), layout);
  std::vector<float> all;
  std::size_t pass = 0;
  for (int row = 0; row < c.rows; ++pass) {
    const int count = std::min(sizes[std::min(pass, sizes.size() - 1)], c.rows - row);
    store->prepare(row, count);
    const AttendInputs part = part_of(inputs, row, count);
    const auto out =
        floats_of(attend(part.q, part.k, part.v, {span_of(c, 0, count, row, store)}, c.options));
    all.insert(all.end(), out.begin(), out.end());
    row += count;
    if (c.cache_window > 0) {
      store->drop_before(row - c.cache_window, c.keep);
    }
  }
  return all;
}

Rounding rounding(const AttendCase& c) {
  return attend_rounding(instruction_set(), c.dtype == mx::bfloat16, c.bits);
}

double limit(const AttendCase& c) {
  return attend_limit(instruction_set(), c.dtype == mx::bfloat16, c.bits);
}

namespace {

// What MLX's codes of rows [n, H_kv, D] of the case's dtype stand for.
mx::array through_codes(const AttendCase& c, const mx::array& rounded, int group) {
  const int dim = rounded.shape(2);
  const int missing = (group - dim % group) % group;
  const auto whole =
      mx::pad(rounded, {{0, 0}, {0, 0}, {0, missing}}, mx::array(0.0F, c.dtype), "edge");
  const auto parts = mx::quantize(whole, group, c.bits);
  const auto exact = [](const mx::array& terms) { return mx::astype(terms, mx::float32); };
  const auto all = mx::dequantize(parts[0], exact(parts[1]), exact(parts[2]), group, c.bits);
  return mx::slice(all, {0, 0, 0}, rounded.shape());
}

mx::array rows_between(const mx::array& rows, int first, int last) {
  return mx::slice(rows, {first, 0, 0}, {last, rows.shape(1), rows.shape(2)});
}

// The mean of some keys [n, H_kv, D], as multiples of 1 / 32767 of a head's largest: [1, H_kv, D].
mx::array offsets_of(const AttendCase& c, const mx::array& keys) {
  const auto rows = floats_of(mx::astype(keys, c.dtype));
  const std::size_t width = rows.size() / keys.shape(0);
  std::vector<float> offsets(width, 0.0F);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    offsets[i % width] += rows[i];
  }
  for (std::size_t head = 0; head < width; head += keys.shape(2)) {
    float largest = 0.0F;
    for (int d = 0; d < keys.shape(2); ++d) {
      offsets[head + d] /= static_cast<float>(keys.shape(0));
      largest = std::max(largest, std::abs(offsets[head + d]));
    }
    const float step = largest / 32767.0F;
    for (int d = 0; d < keys.shape(2); ++d) {
      offsets[head + d] = step * std::nearbyint(offsets[head + d] / step);
    }
  }
  return mx::array(offsets.data(), {1, keys.shape(1), keys.shape(2)}, mx::float32);
}

int group_of(int dim) {
  return dim % 64 == 0 ? 64 : 32;
}

mx::array rounded(const mx::array& queries, Rounding rounding) {
  if (rounding == Rounding::kNone) {
    return queries;
  }
  if (rounding == Rounding::kBf16) {
    return mx::astype(mx::astype(queries, mx::bfloat16), mx::float32);
  }
  const auto largest = mx::max(mx::abs(queries), -1, true);
  const auto integers = mx::round(queries * (mx::array(32512.0F) / largest));
  return integers * (largest / mx::array(32512.0F));
}

}  // namespace

mx::array stored_values(const AttendCase& c, const mx::array& rows) {
  const auto rounded = mx::astype(rows, c.dtype);
  const auto exact = mx::astype(rounded, mx::float32);
  if (c.bits == kUnquantizedBits || rows.shape(0) <= kPageRows) {
    return exact;
  }
  const auto codes = rows_between(rounded, kPageRows, rows.shape(0));
  return mx::concatenate(
      {rows_between(exact, 0, kPageRows), through_codes(c, codes, group_of(rows.shape(2)))}, 0
  );
}

mx::array stored_keys(const AttendCase& c, const mx::array& rows) {
  const auto rounded = mx::astype(rows, c.dtype);
  const auto exact = mx::astype(rounded, mx::float32);
  if (c.bits == kUnquantizedBits) {
    return exact;
  }
  const int group = c.bits == 4 ? 32 : group_of(rows.shape(2));
  auto stored = rows_between(exact, 0, std::min(kPageRows, rows.shape(0)));
  for (int first = kPageRows; first < rows.shape(0); first += kPageRows) {
    const int last = std::min(first + kPageRows, rows.shape(0));
    const auto offsets = offsets_of(c, rows_between(stored, first - 16, first));
    const auto rest = mx::astype(rows_between(exact, first, last) - offsets, c.dtype);
    stored = mx::concatenate({stored, through_codes(c, rest, group) + offsets}, 0);
  }
  return stored;
}

std::vector<float> reference_row(
    const AttendCase& c, const AttendInputs& inputs, int position, Rounding rounding, int span_end
) {
  std::vector<int> seen;
  for (int key = 0; key < std::max(position + 1, span_end); ++key) {
    const bool cached = c.cache_window == 0 || key < c.keep || key > position - c.cache_window;
    const bool in_window = c.options.window == 0 || std::abs(key - position) < c.options.window;
    const int chunk = c.options.chunk;
    const bool in_chunk = chunk == 0 || key / chunk == position / chunk;
    if (cached && in_window && in_chunk) {
      seen.push_back(key);
    }
  }
  const mx::array ids(seen.data(), {static_cast<int>(seen.size())}, mx::int32);
  const auto seen_rows = [&](const mx::array& stored) {
    return mx::transpose(mx::take(stored, ids, 0), {1, 0, 2});
  };
  AttendOptions options = c.options;
  options.window = 0;
  options.chunk = 0;
  options.bidirectional = false;
  options.scale = 1.0F;
  const auto q = part_of(inputs, position, 1).q * mx::array(c.options.scale);
  const auto keys = seen_rows(stored_keys(c, inputs.k));
  const auto values = seen_rows(stored_values(c, inputs.v));
  if (c.bits == kUnquantizedBits || rounding == Rounding::kNone) {
    const auto query = rounded(q, rounding);
    return floats_of(attend_reference(query, keys, values, ids, seen.back(), options));
  }
  // Keys of the first page meet a query that is rounded otherwise: each half of the elements is
  // zero for the keys of the other one.
  const auto in_first = mx::reshape(ids < mx::array(kPageRows), {1, -1, 1});
  const auto zero = mx::array(0.0F);
  const auto halves =
      mx::concatenate({mx::where(in_first, keys, zero), mx::where(in_first, zero, keys)}, 2);
  const auto first_rounding =
      attend_rounding(instruction_set(), c.dtype == mx::bfloat16, kUnquantizedBits);
  const auto query = mx::concatenate({rounded(q, first_rounding), rounded(q, rounding)}, 2);
  return floats_of(attend_reference(query, halves, values, ids, seen.back(), options));
}

}  // namespace saker::kernels

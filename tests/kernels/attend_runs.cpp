// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/attend_runs.h"

#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace saker::kernels {

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
  c.cache_window = *rc::gen::element(0, 0, 5, 70, 128);
  c.keep = *rc::gen::element(0, 4, 66);
  c.rows = *rc::gen::inRange(1, max_rows);
  c.seed = *rc::gen::inRange(0, 1 << 20);
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

mx::array stored_rows(const AttendCase& c, const mx::array& rows) {
  const auto rounded = mx::astype(rows, c.dtype);
  if (c.bits == 16) {
    return mx::astype(rounded, mx::float32);
  }
  const int dim = rows.shape(2);
  const int group = dim % 64 == 0 ? 64 : 32;
  const int missing = (group - dim % group) % group;
  const auto whole =
      mx::pad(rounded, {{0, 0}, {0, 0}, {0, missing}}, mx::array(0.0F, c.dtype), "edge");
  const auto parts = mx::quantize(whole, group, c.bits);
  const auto exact = [](const mx::array& terms) { return mx::astype(terms, mx::float32); };
  const auto all = mx::dequantize(parts[0], exact(parts[1]), exact(parts[2]), group, c.bits);
  return mx::slice(all, {0, 0, 0}, {rows.shape(0), rows.shape(1), dim});
}

namespace {

mx::array rounded(const mx::array& queries, Rounding rounding) {
  if (rounding == Rounding::kBf16) {
    return mx::astype(mx::astype(queries, mx::bfloat16), mx::float32);
  }
  const auto largest = mx::max(mx::abs(queries), -1, true);
  const auto integers = mx::round(queries * (mx::array(32512.0F) / largest));
  return integers * (largest / mx::array(32512.0F));
}

}  // namespace

std::vector<float> reference_row(
    const AttendCase& c, const AttendInputs& inputs, int position, Rounding rounding, int span_end
) {
  std::vector<int> seen;
  for (int key = 0; key < std::max(position + 1, span_end); ++key) {
    const bool cached = c.cache_window == 0 || key < c.keep || key > position - c.cache_window;
    const bool in_window = c.options.window == 0 || std::abs(key - position) < c.options.window;
    if (cached && in_window) {
      seen.push_back(key);
    }
  }
  const mx::array ids(seen.data(), {static_cast<int>(seen.size())}, mx::int32);
  const auto stored = [&](const mx::array& rows) {
    return mx::transpose(mx::take(stored_rows(c, rows), ids, 0), {1, 0, 2});
  };
  auto q = part_of(inputs, position, 1).q;
  AttendOptions options = c.options;
  options.window = 0;
  options.bidirectional = false;
  if (rounding != Rounding::kNone) {
    q = rounded(q * mx::array(options.scale), rounding);
    options.scale = 1.0F;
  }
  return floats_of(
      attend_reference(q, stored(inputs.k), stored(inputs.v), ids, seen.back(), options)
  );
}

}  // namespace saker::kernels

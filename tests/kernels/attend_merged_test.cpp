// SPDX-License-Identifier: Apache-2.0
#include "saker/base/error.h"
#include "saker/kernels/ops/attend.h"
#include "saker/kernels/ops/norm.h"
#include "saker/kernels/ops/rope.h"

#include "tests/kernels/attend_runs.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

using AttendMergedTest = AttendTest;

// Random rows of a merged projection and what its heads go through.
struct MergedCase {
  mx::array rows;
  MergedHeads heads;
};

MergedCase random_merged(const AttendCase& c, bool has_norms, int rotated) {
  const auto normal = [&](const mx::Shape& shape, std::uint64_t stream) {
    return mx::random::normal(shape, mx::float32, mx::random::key(c.seed * 7 + stream));
  };
  const int heads = c.kv_heads * (c.group + 2);
  MergedHeads of{
      c.kv_heads * c.group,
      c.kv_heads,
      c.head_dim,
      std::nullopt,
      normal({c.rows, rotated / 2}, 1),
      normal({c.rows, rotated / 2}, 2)
  };
  if (has_norms) {
    of.norms = {normal({c.head_dim}, 3), normal({c.head_dim}, 4), 1e-6F};
  }
  return {normal({c.rows, heads * c.head_dim}, 0), of};
}

// What attend_merged stands for, operation by operation.
mx::array attend_apart(
    const MergedCase& merged, const std::vector<AttendSpan>& spans, const AttendOptions& options
) {
  const MergedHeads& of = merged.heads;
  const int rows = merged.rows.shape(0);
  const auto cut = [&](int first, int count) {
    const auto part =
        mx::slice(merged.rows, {0, first * of.head_dim}, {rows, (first + count) * of.head_dim});
    return mx::reshape(part, {rows, count, of.head_dim});
  };
  auto q = cut(0, of.query_heads);
  auto k = cut(of.query_heads, of.kv_heads);
  if (of.norms) {
    q = rms_norm(q, of.norms->q, of.norms->eps);
    k = rms_norm(k, of.norms->k, of.norms->eps);
  }
  const auto v = cut(of.query_heads + of.kv_heads, of.kv_heads);
  return attend(rope(q, of.cos, of.sin), rope(k, of.cos, of.sin), v, spans, options);
}

// The rows before `first`, and those from there on, if any, in stores of their own.
std::vector<AttendSpan> two_sequences(const AttendCase& c, int first, KvLayout layout) {
  std::vector<AttendSpan> spans;
  for (const auto& [from, count] : {std::pair(0, first), {first, c.rows - first}}) {
    if (count > 0) {
      spans.push_back(span_of(c, from, count, 0, std::make_shared<KvStore>(c.shape(), layout)));
      spans.back().store->prepare(0, count);
    }
  }
  return spans;
}

RC_GTEST_FIXTURE_PROP(AttendMergedTest, GivesTheBitsOfItsParts, ()) {
  use_random_machine();
  AttendCase c = random_case(150);
  c.value_head_dim = c.head_dim;
  const int rotated = 2 * *rc::gen::inRange(1, c.head_dim / 2 + 1);
  const MergedCase merged = random_merged(c, *rc::gen::arbitrary<bool>(), rotated);
  const int first = *rc::gen::inRange(1, c.rows + 1);
  const auto apart = two_sequences(c, first, KvLayout::kPaged);
  const auto together = two_sequences(c, first, KvLayout::kPaged);
  RC_ASSERT(attends_merged(together));
  const auto expected = floats_of(attend_apart(merged, apart, c.options));
  const auto got = attend_merged(merged.rows, merged.heads, together, c.options);
  RC_ASSERT(got.shape() == mx::Shape({c.rows, c.kv_heads * c.group * c.head_dim}));
  RC_ASSERT(floats_of(got) == expected);
  // What they stored is the same too.
  const auto q = mx::reshape(got, {c.rows, c.kv_heads * c.group, c.head_dim});
  RC_ASSERT(
      floats_of(attend_stored(q, together, c.options)) ==
      floats_of(attend_stored(q, apart, c.options))
  );
}

// MLX's operations, which run on a GPU.
RC_GTEST_FIXTURE_PROP(AttendMergedTest, OverContiguousStoresIsNearItsParts, ()) {
  AttendCase c = random_case(150);
  c.bits = 16;
  c.dtype = mx::float32;  // A key is not rounded to another bf16 than its part.
  c.head_dim += c.head_dim % 2;
  c.value_head_dim = c.head_dim;
  const int rotated = *rc::gen::arbitrary<bool>() ? c.head_dim : 2;
  const MergedCase merged = random_merged(c, *rc::gen::arbitrary<bool>(), rotated);
  const int first = *rc::gen::inRange(1, c.rows + 1);
  const auto spans = two_sequences(c, first, KvLayout::kContiguous);
  const auto apart =
      attend_apart(merged, two_sequences(c, first, KvLayout::kContiguous), c.options);
  RC_ASSERT(attends_merged(spans));
  const auto got = attend_merged(merged.rows, merged.heads, spans, c.options);
  const auto expected = mx::reshape(apart, got.shape());
  RC_ASSERT(mx::allclose(got, expected, 1e-3, 1e-3).item<bool>());
}

TEST_F(AttendMergedTest, WrongCallsAreErrors) {
  AttendCase c;
  c.group = 2;
  c.rows = 3;
  const auto span = [&](KvLayout layout, int bits = 16) {
    c.bits = bits;
    auto store = std::make_shared<KvStore>(c.shape(), layout);
    store->prepare(0, 3);
    return span_of(c, 0, 3, 0, std::move(store));
  };
  const std::vector<AttendSpan> spans = {span(KvLayout::kPaged)};
  const MergedCase good = random_merged(c, true, 16);
  EXPECT_NO_THROW(attend_merged(good.rows, good.heads, spans, c.options));
  const auto expect_error = [&](const auto& damage) {
    MergedCase bad = good;
    damage(bad);
    EXPECT_THROW(attend_merged(bad.rows, bad.heads, spans, c.options), Error);
  };
  expect_error([](MergedCase& bad) { bad.rows = mx::zeros({3, 63}); });
  expect_error([](MergedCase& bad) { bad.rows = mx::zeros({3, 4, 16}); });
  expect_error([](MergedCase& bad) { bad.heads.query_heads = 1; });
  AttendOptions sinks = c.options;
  sinks.sinks = mx::zeros({3});
  EXPECT_THROW(attend_merged(good.rows, good.heads, spans, sinks), Error);
  expect_error([](MergedCase& bad) { bad.heads.cos = mx::zeros({3, 7}); });
  expect_error([](MergedCase& bad) { bad.heads.cos = bad.heads.sin = mx::zeros({3, 9}); });
  expect_error([](MergedCase& bad) { bad.heads.cos = bad.heads.sin = mx::zeros({2, 8}); });
  expect_error([](MergedCase& bad) { bad.heads.norms->k = mx::zeros({15}); });
  expect_error([](MergedCase& bad) {
    bad.heads.norms->by_head = weights_of_heads(mx::ones({16}), 1, mx::ones({16}), 1);
  });
  c.head_dim = c.value_head_dim = 13;
  const MergedCase odd = random_merged(c, true, 12);
  EXPECT_THROW(attend_merged(odd.rows, odd.heads, {span(KvLayout::kContiguous)}, c.options), Error);
  EXPECT_NO_THROW(attend_merged(odd.rows, odd.heads, {span(KvLayout::kPaged)}, c.options));
  EXPECT_FALSE(attends_merged({}));
  EXPECT_FALSE(attends_merged({span(KvLayout::kContiguous), span(KvLayout::kPaged)}));
  EXPECT_FALSE(attends_merged({span(KvLayout::kPaged), span(KvLayout::kPaged, 8)}));
  EXPECT_THROW(
      attend_merged(
          good.rows, good.heads, {span(KvLayout::kPaged), span(KvLayout::kPaged, 8)}, c.options
      ),
      Error
  );
}

}  // namespace
}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/attend.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"

#include "tests/kernels/attend_runs.h"
#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/same_bits.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace saker::kernels {
namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

double largest_difference(const float* a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - b[i]);
    largest = difference <= largest ? largest : difference;  // NaN stays.
  }
  return largest;
}

std::size_t row_floats(const AttendCase& c) {
  return static_cast<std::size_t>(c.kv_heads) * c.group * c.value_head_dim;
}

RC_GTEST_FIXTURE_PROP(AttendTest, PagesAgreeWithTheReference, ()) {
  use_random_machine();
  const AttendCase c = random_case(200);
  const auto got = run_in_parts(c, {*rc::gen::element(1, 7, 64, 100, 200)});
  const AttendInputs inputs = random_inputs(c);
  for (int i = 0; i < 4; ++i) {
    const int row = i == 0 ? c.rows - 1 : *rc::gen::inRange(0, c.rows);
    const auto expected = reference_row(c, inputs, row, rounding(c));
    RC_ASSERT(largest_difference(got.data() + row * row_floats(c), expected) < limit(c));
  }
}

RC_GTEST_FIXTURE_PROP(AttendTest, ContiguousRowsAgreeWithTheReference, ()) {
  AttendCase c = random_case(150);
  c.bits = 16;
  const auto got = run_in_parts(c, {*rc::gen::element(1, 7, 64, 100, 200)}, KvLayout::kContiguous);
  const AttendInputs inputs = random_inputs(c);
  for (int i = 0; i < 3; ++i) {
    const int row = i == 0 ? c.rows - 1 : *rc::gen::inRange(0, c.rows);
    const auto expected = reference_row(c, inputs, row, Rounding::kNone);
    RC_ASSERT(largest_difference(got.data() + row * row_floats(c), expected) < 2e-5);
  }
}

// Values that lie in keys are turned for each block; the bits are those of values beside keys.
RC_GTEST_FIXTURE_PROP(AttendTest, ValuesInKeysHaveTheBitsOfStoredOnes, ()) {
  use_random_machine();
  AttendCase c = random_case(300);
  c.head_dim = *rc::gen::element(10, 13, 40, 96, 160, 576);
  c.value_head_dim = *rc::gen::element(1, 7, 8, 9, 10, 32, 48, 512);
  c.value_head_dim = std::min(c.value_head_dim, c.head_dim);
  c.group = *rc::gen::element(1, 3, 20, 70);
  if (c.options.sinks) {
    c.options.sinks = random_sinks(c);
  }
  c.bits = 16;
  c.values_in_keys = true;
  const auto layout = *rc::gen::element(KvLayout::kPaged, KvLayout::kPaged, KvLayout::kContiguous);
  const std::vector<int> sizes = {*rc::gen::element(1, 7, 64, 100, 300)};
  const auto once = run_in_parts(c, sizes, layout);
  c.stores_them_once = false;
  RC_ASSERT(same_bits(once, run_in_parts(c, sizes, layout)));
}

// Rows with an infinite value are computed again without it, and it reaches only rows that see it.
TEST_F(AttendTest, InfiniteValuesInKeysHaveTheBitsOfStoredOnes) {
  for (const auto& set : instruction_sets()) {
    select_instruction_set(set);
    AttendCase c;
    c.group = 3;
    c.head_dim = 48;
    c.value_head_dim = 32;
    c.rows = 90;
    c.values_in_keys = true;
    AttendInputs inputs = random_inputs(c);
    const auto row = mx::full({1, 1, 1}, std::numeric_limits<float>::infinity());
    inputs.k = mx::slice_update(inputs.k, row, mx::Shape{70, 0, 5}, mx::Shape{71, 1, 6});
    inputs.v = mx::slice(inputs.k, {0, 0, 0}, {c.rows, 1, c.value_head_dim});
    // Queries do not look at that element, so scores stay finite.
    const mx::Shape end = {c.rows, 3, 6};
    inputs.q = mx::slice_update(inputs.q, mx::zeros({c.rows, 3, 1}), mx::Shape{0, 0, 5}, end);
    const auto run = [&] {
      auto store = std::make_shared<KvStore>(c.shape(), KvLayout::kPaged);
      store->prepare(0, c.rows);
      return floats_of(
          attend(inputs.q, inputs.k, inputs.v, {span_of(c, 0, c.rows, 0, store)}, c.options)
      );
    };
    const auto once = run();
    c.stores_them_once = false;
    EXPECT_TRUE(same_bits(once, run())) << set;
  }
}

RC_GTEST_FIXTURE_PROP(AttendTest, BidirectionalRowsSeeTheirWholeSpan, ()) {
  use_random_machine();
  AttendCase c = random_case(150);
  c.options.bidirectional = true;
  c.options.chunk = 0;
  const auto layout = *rc::gen::element(KvLayout::kPaged, KvLayout::kContiguous);
  const bool paged = layout == KvLayout::kPaged;
  c.bits = paged ? c.bits : 16;
  const auto rounds = paged ? rounding(c) : Rounding::kNone;
  const int span = *rc::gen::element(1, 5, 16, 70, 150);
  const auto got = run_in_parts(c, {span}, layout);
  const AttendInputs inputs = random_inputs(c);
  for (int i = 0; i < 4; ++i) {
    const int row = i == 0 ? 0 : *rc::gen::inRange(0, c.rows);
    const int end = std::min((row / span + 1) * span, c.rows);
    const auto expected = reference_row(c, inputs, row, rounds, end);
    RC_ASSERT(largest_difference(got.data() + row * row_floats(c), expected) < limit(c));
  }
}

RC_GTEST_FIXTURE_PROP(AttendTest, BitsDoNotDependOnChunksAndThreads, ()) {
  use_random_machine();
  const AttendCase c = random_case(150);
  set_threads(1);
  const auto alone = run_in_parts(c, {1});
  set_threads(*rc::gen::inRange(1, 5));
  const auto sizes =
      *rc::gen::container<std::vector<int>>(3, rc::gen::element(1, 2, 7, 50, 64, 100));
  RC_ASSERT(same_bits(run_in_parts(c, sizes), alone));
}

// Several sequences, each with its own progress, in passes together; every pass takes some rows of
// some of them.
RC_GTEST_FIXTURE_PROP(AttendTest, BitsDoNotDependOnOtherSequences, ()) {
  use_random_machine();
  AttendCase c = random_case(60);
  const int count = *rc::gen::inRange(2, 6);
  std::vector<AttendCase> cases;
  std::vector<AttendInputs> inputs;
  std::vector<std::shared_ptr<KvStore>> stores;
  std::vector<std::vector<float>> got(count);
  std::vector<int> done(count, 0);
  for (int i = 0; i < count; ++i) {
    c.seed += 1;
    c.rows = *rc::gen::inRange(1, 60);
    c.bits = *rc::gen::element(16, 8, 4);
    cases.push_back(c);
    inputs.push_back(random_inputs(c));
    stores.push_back(std::make_shared<KvStore>(c.shape(), KvLayout::kPaged));
  }
  for (bool left = true; left;) {
    std::vector<AttendSpan> spans;
    std::vector<AttendInputs> parts;
    std::vector<int> sequence;
    int rows = 0;
    for (int i = 0; i < count; ++i) {
      const int take = std::min(cases[i].rows - done[i], *rc::gen::element(0, 1, 1, 5, 20));
      if (take > 0) {
        stores[i]->prepare(done[i], take);
        spans.push_back(span_of(cases[i], rows, take, done[i], stores[i]));
        parts.push_back(part_of(inputs[i], done[i], take));
        sequence.push_back(i);
        rows += take;
      }
    }
    if (rows > 0) {
      const AttendInputs all = joined(parts);
      const auto out = floats_of(attend(all.q, all.k, all.v, spans, c.options));
      for (std::size_t s = 0; s < spans.size(); ++s) {
        const auto from = out.begin() + spans[s].first_row * row_floats(c);
        auto& rows_of_sequence = got[sequence[s]];
        rows_of_sequence.insert(
            rows_of_sequence.end(), from, from + spans[s].row_count * row_floats(c)
        );
        done[sequence[s]] += spans[s].row_count;
      }
    }
    left = false;
    for (int i = 0; i < count; ++i) {
      left = left || done[i] < cases[i].rows;
    }
  }
  for (int i = 0; i < count; ++i) {
    RC_ASSERT(same_bits(got[i], run_in_parts(cases[i], {1})));
  }
}

// Beyond one chunk of keys, where chunks may go to different threads.
TEST_F(AttendTest, LongContextsGiveTheSameBitsInAnySplit) {
  AttendCase c;
  c.kv_heads = 1;
  c.group = 2;
  c.head_dim = 16;
  c.value_head_dim = 16;
  c.options.scale = 0.25F;
  c.rows = 2100;
  for (const int window : {0, 1500}) {
    c.options.window = window;
    if (window > 0) {
      c.options.sinks = random_sinks(c);
    }
    set_threads(1);
    const auto alone = run_in_parts(c, {1});
    set_threads(3);
    EXPECT_TRUE(same_bits(run_in_parts(c, {1}), alone)) << window;
    EXPECT_TRUE(same_bits(run_in_parts(c, {700, 512}), alone)) << window;
    const AttendInputs inputs = random_inputs(c);
    for (const int row : {1023, 1024, 2099}) {
      const auto expected = reference_row(c, inputs, row, rounding(c));
      EXPECT_LT(largest_difference(alone.data() + row * row_floats(c), expected), limit(c)) << row;
    }
  }
}

// Tiles of several heads, and tiles of unlike sizes whose chunks go to different threads.
TEST_F(AttendTest, ALongSequenceAndShortOnesGiveTheSameBitsTogether) {
  AttendCase c;
  c.kv_heads = 4;
  c.group = 2;
  c.head_dim = 16;
  c.value_head_dim = 16;
  c.options.scale = 0.25F;
  c.options.sinks = random_sinks(c);
  std::vector<AttendSpan> spans;
  std::vector<AttendInputs> last;
  std::vector<std::vector<float>> alone;
  int rows = 0;
  set_threads(1);
  for (const int length : {3, 4500, 70, 40, 1, 200, 64, 130}) {
    const int taken = length == 200 ? 5 : 1;
    c.rows = length;
    c.seed += 1;
    const AttendInputs inputs = random_inputs(c);
    auto store = std::make_shared<KvStore>(c.shape(), KvLayout::kPaged);
    store->prepare(0, length);
    store->write(0, mx::transpose(inputs.k, {1, 0, 2}), mx::transpose(inputs.v, {1, 0, 2}));
    const AttendInputs part = part_of(inputs, length - taken, taken);
    const AttendSpan span = span_of(c, 0, taken, length - taken, store);
    alone.push_back(floats_of(attend(part.q, part.k, part.v, {span}, c.options)));
    spans.push_back(span);
    spans.back().first_row = rows;
    last.push_back(part);
    rows += taken;
  }
  const AttendInputs all = joined(last);
  for (const int threads : {1, 2, 3, 8}) {
    set_threads(threads);
    const auto out = floats_of(attend(all.q, all.k, all.v, spans, c.options));
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const float* got = out.data() + spans[i].first_row * row_floats(c);
      EXPECT_TRUE(kernels::same_bits(got, alone[i].data(), alone[i].size()))
          << threads << " threads, sequence " << i;
    }
  }
}

TEST_F(AttendTest, KeptRowsAreSeenBesideALongWindow) {
  AttendCase c;
  c.head_dim = 16;
  c.options.scale = 0.25F;
  c.cache_window = 100;
  c.keep = 70;
  c.rows = 1300;
  const auto alone = run_in_parts(c, {1});
  EXPECT_TRUE(same_bits(run_in_parts(c, {500, 3, 300}), alone));
  const AttendInputs inputs = random_inputs(c);
  for (const int row : {69, 99, 100, 169, 170, 171, 400, 1299}) {
    const auto expected = reference_row(c, inputs, row, rounding(c));
    EXPECT_LT(largest_difference(alone.data() + row * row_floats(c), expected), limit(c)) << row;
  }
}

TEST_F(AttendTest, CopiesOfAStoreDivergeWithoutTouchingEachOther) {
  AttendCase c;
  c.kv_heads = 2;
  c.group = 2;
  c.options.scale = 0.25F;
  c.rows = 100;
  AttendCase other = c;
  other.seed = 77;
  const AttendInputs first = random_inputs(c);
  const AttendInputs second = random_inputs(other);
  const auto expected = run_in_parts(c, {1});
  auto store = std::make_shared<KvStore>(c.shape(), KvLayout::kPaged);
  store->prepare(0, 70);
  const AttendInputs prefix = part_of(first, 0, 70);
  mx::eval(attend(prefix.q, prefix.k, prefix.v, {span_of(c, 0, 70, 0, store)}, c.options));
  auto fork = std::make_shared<KvStore>(*store);
  const auto run_rest = [&](const AttendInputs& inputs, const std::shared_ptr<KvStore>& rows) {
    rows->prepare(70, 30);
    const AttendInputs rest = part_of(inputs, 70, 30);
    return floats_of(attend(rest.q, rest.k, rest.v, {span_of(c, 0, 30, 70, rows)}, c.options));
  };
  const auto forked = run_rest(second, fork);
  const auto continued = run_rest(first, store);
  const std::vector<float> tail(expected.begin() + 70 * row_floats(c), expected.end());
  EXPECT_TRUE(same_bits(continued, tail));
  EXPECT_FALSE(same_bits(forked, tail));
  store->drop_from(70);
  EXPECT_TRUE(same_bits(run_rest(second, store), forked));
}

class AttendBitsTest : public AttendTest, public testing::WithParamInterface<int> {};

INSTANTIATE_TEST_SUITE_P(
    Caches, AttendBitsTest, testing::Values(16, 8, 4), testing::PrintToStringParamName()
);

TEST_P(AttendBitsTest, ANanStaysInItsRowAndItsKeys) {
  for (const std::string& name : instruction_sets()) {
    select_instruction_set(name);
    AttendCase c;
    c.bits = GetParam();
    c.head_dim = 32;
    c.value_head_dim = 32;
    c.group = 2;
    c.options.scale = 0.2F;
    c.options.window = 10;
    c.rows = 90;
    const auto clean = run_in_parts(c, {90});
    AttendInputs inputs = random_inputs(c);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const auto is_row = [&](int row) {
      return mx::reshape(mx::arange(c.rows) == mx::array(row), {c.rows, 1, 1});
    };
    inputs.q = mx::where(is_row(20), mx::array(nan), inputs.q);
    inputs.k = mx::where(is_row(40), mx::array(nan), inputs.k);
    inputs.v = mx::where(is_row(70), mx::array(nan), inputs.v);
    auto store = std::make_shared<KvStore>(c.shape(), KvLayout::kPaged);
    store->prepare(0, c.rows);
    const auto got =
        floats_of(attend(inputs.q, inputs.k, inputs.v, {span_of(c, 0, c.rows, 0, store)}, c.options)
        );
    for (int row = 0; row < c.rows; ++row) {
      const bool hit = row == 20 || (row >= 40 && row < 50) || (row >= 70 && row < 80);
      const std::size_t at = row * row_floats(c);
      if (hit) {
        EXPECT_TRUE(std::isnan(got[at])) << name << " row " << row;
      } else {
        EXPECT_EQ(std::memcmp(&got[at], &clean[at], row_floats(c) * sizeof(float)), 0)
            << name << " row " << row;
      }
    }
  }
}

// Forgotten rows may hold anything.
TEST_P(AttendBitsTest, RowsBehindTheEndAreNeverRead) {
  AttendCase c;
  c.bits = GetParam();
  c.options.scale = 0.25F;
  c.rows = 40;
  const auto expected = run_in_parts(c, {40});
  auto store = std::make_shared<KvStore>(c.shape(), KvLayout::kPaged);
  store->prepare(0, 64);
  const auto poison = mx::full({1, 64, 16}, std::numeric_limits<float>::quiet_NaN());
  store->write(0, poison, poison);
  store->drop_from(0);
  store->prepare(0, 64);
  store->write(0, poison, poison);
  store->drop_from(1);
  const AttendInputs inputs = random_inputs(c);
  store->prepare(0, 40);
  const auto got =
      floats_of(attend(inputs.q, inputs.k, inputs.v, {span_of(c, 0, 40, 0, store)}, c.options));
  EXPECT_TRUE(same_bits(got, expected));
}

TEST_F(AttendTest, SlicesOfAJoinedProjectionAreReadWhereTheyLie) {
  AttendCase c;
  c.kv_heads = 2;
  c.group = 2;
  c.options.scale = 0.25F;
  c.rows = 5;
  const AttendInputs inputs = random_inputs(c);
  const auto flat = [&](const mx::array& x) { return mx::reshape(x, {c.rows, -1}); };
  const auto all = mx::concatenate({flat(inputs.q), flat(inputs.k), flat(inputs.v)}, 1);
  const auto cut = [&](int from, int heads) {
    return mx::reshape(mx::slice(all, {0, from}, {c.rows, from + heads * 16}), {c.rows, heads, 16});
  };
  const auto run = [&](const mx::array& q, const mx::array& k, const mx::array& v) {
    auto store = std::make_shared<KvStore>(c.shape(), KvLayout::kPaged);
    store->prepare(0, c.rows);
    return floats_of(attend(q, k, v, {span_of(c, 0, c.rows, 0, store)}, c.options));
  };
  const auto expected = run(inputs.q, inputs.k, inputs.v);
  EXPECT_TRUE(same_bits(run(cut(0, 4), cut(64, 2), cut(96, 2)), expected));
  const auto turned = mx::contiguous(mx::transpose(inputs.q, {0, 2, 1}));
  EXPECT_TRUE(same_bits(run(mx::transpose(turned, {0, 2, 1}), inputs.k, inputs.v), expected));
}

// Layers that share keys and values: the bits are those of the layer that stored them.
TEST_F(AttendTest, StoredRowsAreAttendedToWithoutNewOnes) {
  AttendCase c;
  c.kv_heads = 2;
  c.group = 3;
  c.options.scale = 0.25F;
  c.options.window = 20;
  c.rows = 90;
  for (const auto& [layout, bits] :
       {std::pair(KvLayout::kPaged, 16), {KvLayout::kPaged, 4}, {KvLayout::kContiguous, 16}}) {
    c.bits = bits;
    const AttendInputs all = random_inputs(c);
    auto store = std::make_shared<KvStore>(c.shape(), layout);
    for (const auto& [first, count] : {std::pair(0, 70), {70, 20}}) {
      const AttendInputs part = part_of(all, first, count);
      store->prepare(first, count);
      const std::vector<AttendSpan> spans = {span_of(c, 0, count, first, store)};
      const auto own = floats_of(attend(part.q, part.k, part.v, spans, c.options));
      const auto shared = floats_of(attend_stored(part.q, spans, c.options));
      EXPECT_TRUE(same_bits(own, shared)) << bits << " bits, rows from " << first;
    }
  }
  const auto store = std::make_shared<KvStore>(c.shape(), KvLayout::kPaged);
  const AttendInputs few = part_of(random_inputs(c), 0, 2);
  EXPECT_THROW(attend_stored(few.q, {}, c.options), Error);
  EXPECT_THROW(attend_stored(few.q, {span_of(c, 0, 2, 0, store)}, c.options), Error);
  store->prepare(0, 2);
  EXPECT_THROW(attend_stored(few.q, {span_of(c, 0, 1, 0, store)}, c.options), Error);
  const auto narrow = mx::slice(few.q, {0, 0, 0}, {2, 6, 8});
  EXPECT_THROW(attend_stored(narrow, {span_of(c, 0, 2, 0, store)}, c.options), Error);
}

TEST_F(AttendTest, WrongCallsAreErrors) {
  AttendCase c;
  c.rows = 4;
  const AttendInputs in = random_inputs(c);
  auto store = std::make_shared<KvStore>(c.shape(), KvLayout::kPaged);
  const auto call = [&](std::vector<AttendSpan> spans) {
    return attend(in.q, in.k, in.v, std::move(spans), c.options);
  };
  EXPECT_THROW(call({span_of(c, 0, 4, 0, store)}), Error);  // Not prepared.
  store->prepare(0, 4);
  EXPECT_THROW(call({}), Error);
  EXPECT_THROW(call({span_of(c, 0, 3, 0, store)}), Error);
  EXPECT_THROW(call({span_of(c, 1, 3, 0, store)}), Error);
  EXPECT_THROW(call({span_of(c, 0, 4, -1, store)}), Error);
  EXPECT_THROW(call({span_of(c, 0, 4, 64, store)}), Error);
  EXPECT_THROW(call({span_of(c, 0, 4, INT64_MAX, store)}), Error);
  EXPECT_THROW(call({span_of(c, 0, 4, 0, nullptr)}), Error);
  EXPECT_THROW(attend(in.q, in.k, in.k, {}, c.options), Error);
  auto wide = std::make_shared<KvStore>(KvShape{1, 32, 16, mx::bfloat16}, KvLayout::kPaged);
  wide->prepare(0, 4);
  EXPECT_THROW(call({span_of(c, 0, 4, 0, wide)}), Error);
  EXPECT_NO_THROW(call({span_of(c, 0, 4, 0, store)}));
  c.options.sinks = mx::zeros({2});
  EXPECT_THROW(call({span_of(c, 0, 4, 0, store)}), Error);
  c.options.sinks = mx::zeros({1}, mx::bfloat16);
  EXPECT_THROW(call({span_of(c, 0, 4, 0, store)}), Error);
}

}  // namespace
}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/forward_context.h"

#include "saker/cache/kv.h"
#include "saker/cache/window.h"

#include "tests/support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saker::nn {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

cache::SequenceCache make_cache() {
  const kernels::KvShape shape{1, 4, 4, mx::float32};
  std::vector<std::unique_ptr<cache::LayerCache>> layers;
  layers.push_back(std::make_unique<cache::KVCache>(shape));
  layers.push_back(std::make_unique<cache::WindowCache>(shape, 3));
  return cache::SequenceCache(std::move(layers));
}

void write(cache::SequenceCache& cache, int rows) {
  for (int i = 0; i < cache.layer_count(); ++i) {
    cache.layer(i).update(mx::zeros({1, 1, rows, 4}), mx::zeros({1, 1, rows, 4}));
  }
}

TEST(ForwardContext, RowsFollowTheSpans) {
  auto first = make_cache();
  auto second = make_cache();
  write(first, 5);
  ForwardContext context({{&first, 2}, {&second, 3}});
  EXPECT_EQ(context.row_count(), 5);
  const auto positions = context.positions();
  EXPECT_THAT(
      std::vector<std::int64_t>(positions.begin(), positions.end()), ElementsAre(5, 6, 0, 1, 2)
  );
}

TEST(ForwardContext, NamesTheRowsThatTakeInt8) {
  auto first = make_cache();
  auto second = make_cache();
  const nn::Span coarse = {.cache = &second, .row_count = 3, .int8 = true};
  const ForwardContext context({{&first, 2}, coarse, {&first, 1}});
  EXPECT_THAT(context.adapters().int8_rows(), ElementsAre(kernels::RowRange{2, 3}));
  const std::vector<int> rows = {2, 5};
  EXPECT_TRUE(context.adapters().select(rows).int8_rows().empty());
}

TEST(ForwardContext, AppendReservesEverySpan) {
  auto first = make_cache();
  auto second = make_cache();
  write(first, 5);
  ForwardContext context({{&first, 2}, {&second, 3}});
  const auto spans = context.append(1);
  ASSERT_EQ(spans.size(), 2U);
  EXPECT_EQ(spans[0].first_row, 0);
  EXPECT_EQ(spans[0].first_position, 5);
  EXPECT_EQ(spans[0].window, 3);
  EXPECT_EQ(spans[1].first_row, 2);
  EXPECT_EQ(spans[1].row_count, 3);
  EXPECT_EQ(spans[1].first_position, 0);
  EXPECT_EQ(first.layer(1).offset(), 7);
  EXPECT_EQ(first.layer(0).offset(), 5);
}

TEST(ForwardContext, MakesEachTableOnce) {
  auto cache = make_cache();
  write(cache, 1);
  ForwardContext context({{&cache, 2}});
  const Rope rope(4, {});
  const Rope other(8, {});
  const auto* table = &context.rope_table(rope);
  EXPECT_EQ(context.rope_table(other).cos.shape(), (mx::Shape{2, 4}));
  EXPECT_EQ(&context.rope_table(rope), table);
  const std::vector<std::int64_t> positions{1, 2};
  EXPECT_TRUE(mx::array_equal(table->cos, rope.table(positions).cos).item<bool>());
}

TEST(ForwardContext, AForkCopiesRowsIntoNewSpans) {
  auto trunk = make_cache();
  auto one = make_cache();
  auto other = make_cache();
  write(trunk, 5);
  Fork fork{.layer = 1, .spans = {{&one, 2}, {&other, 2}}, .rows = {0, 1, 0, 1}};
  ForwardContext context({{&trunk, 2}}, fork);
  EXPECT_FALSE(context.forks_before(0));
  EXPECT_TRUE(context.forks_before(1));
  const mx::array rows = context.fork();
  EXPECT_TRUE(mx::array_equal(rows, mx::array({0, 1, 0, 1}, mx::int32)).item<bool>());
  EXPECT_FALSE(context.forks_before(1));
  EXPECT_EQ(context.row_count(), 4);
  const auto positions = context.positions();
  EXPECT_THAT(
      std::vector<std::int64_t>(positions.begin(), positions.end()), ElementsAre(5, 6, 5, 6)
  );
  EXPECT_EQ(context.spans()[1].cache, &other);
}

TEST(ForwardContext, KnowsTheRowsThatALayerAppended) {
  auto cache = make_cache();
  cache.begin();
  ForwardContext context({{&cache, 2}});
  expect_error(ErrorCode::kInternal, {"layer 0", "no rows"}, [&] { context.appended(0); });
  const auto first_position = context.append(0).front().first_position;
  ASSERT_EQ(context.appended(0).size(), 1U);
  EXPECT_EQ(context.appended(0).front().first_position, first_position);
  EXPECT_EQ(context.appended(0).front().row_count, 2);
}

TEST(ForwardContext, RefusesForksThatDoNotFit) {
  auto cache = make_cache();
  auto other = make_cache();
  const auto refuses = [&](Fork fork) {
    expect_error(ErrorCode::kInvalidArgument, {"fork"}, [&] {
      ForwardContext context({{&cache, 2}}, std::move(fork));
    });
  };
  refuses({});
  refuses({.layer = 1, .spans = {{&other, 2}}, .rows = {0}});
  refuses({.layer = 1, .spans = {{&other, 2}}, .rows = {0, 2}});
  refuses({.layer = 1, .spans = {{&other, 2}}, .rows = {-1, 0}});
}

mx::array rows_of(std::initializer_list<float> values) {
  return mx::reshape(mx::array(values, mx::float32), {-1, 1});
}

TEST(ForwardContext, CapturedLayersLieBesideEachOtherInTheOrderAskedFor) {
  auto cache = make_cache();
  ForwardContext context({{&cache, 3}});
  context.captured_layers = {1, -1, 1};
  context.captured.insert_or_assign(-1, rows_of({1, 2, 3}));
  context.captured.insert_or_assign(1, rows_of({10, 20, 30}));
  const std::vector<std::int32_t> rows = {2, 0};
  const auto expected = mx::array({30.0F, 3.0F, 30.0F, 10.0F, 1.0F, 10.0F}, {2, 3});
  const auto captured = context.captured_hidden(rows_of({7, 8, 9}), rows);
  EXPECT_TRUE(mx::array_equal(captured, expected).item<bool>());
}

TEST(ForwardContext, WithoutCapturedLayersTheFinalRowsStandForThem) {
  auto cache = make_cache();
  const ForwardContext context({{&cache, 3}});
  const std::vector<std::int32_t> rows = {1, 2};
  const auto captured = context.captured_hidden(rows_of({7, 8, 9}), rows);
  EXPECT_TRUE(mx::array_equal(captured, rows_of({8, 9})).item<bool>());
}

TEST(ForwardContext, RefusesToCaptureOtherRowsAndLayers) {
  auto cache = make_cache();
  ForwardContext context({{&cache, 3}});
  const std::vector<std::int32_t> beyond = {3};
  const std::vector<std::int32_t> before = {-1};
  for (const auto& rows : {beyond, before}) {
    expect_error(ErrorCode::kInvalidArgument, {"row", "0 to 2"}, [&] {
      context.captured_hidden(rows_of({7, 8, 9}), rows);
    });
  }
  context.captured_layers = {1};
  const std::vector<std::int32_t> rows = {0};
  expect_error(ErrorCode::kInternal, {"layer 1"}, [&] {
    context.captured_hidden(rows_of({7, 8, 9}), rows);
  });
}

TEST(ForwardContext, RefusesEmptySpans) {
  auto cache = make_cache();
  expect_error(ErrorCode::kInvalidArgument, {"no spans"}, [] { ForwardContext context({}); });
  expect_error(ErrorCode::kInvalidArgument, {"0 rows"}, [&] {
    ForwardContext context({{&cache, 0}});
  });
  expect_error(ErrorCode::kInvalidArgument, {}, [] { ForwardContext context({{nullptr, 2}}); });
}

}  // namespace
}  // namespace saker::nn

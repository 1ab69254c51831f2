// SPDX-License-Identifier: Apache-2.0
// Cases R and M of the cache conformance list.
#include "saker/caches/rotating.h"

#include "saker/base/error.h"
#include "saker/caches/kv.h"

#include "tests/caches/token_rows.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>

namespace saker::caches {
namespace {

using testing::expect_error;

TEST(CachesRotating, R1WrapsBehindTheKeptRows) {
  RotatingKVCache cache(8, 4);
  Ids seen;
  const auto up_to = [&](int last) {
    for (auto next = static_cast<int>(cache.offset()); next <= last; ++next) {
      seen = append(cache, {next});
    }
    return seen;
  };
  EXPECT_EQ(up_to(8), (Ids{0, 1, 2, 3, 8, 5, 6, 7}));
  EXPECT_EQ(up_to(9), (Ids{0, 1, 2, 3, 8, 9, 6, 7}));
  EXPECT_EQ(up_to(11), (Ids{0, 1, 2, 3, 8, 9, 10, 11}));
  EXPECT_EQ(cache.offset(), 12);
  EXPECT_FALSE(cache.is_trimmable());
  EXPECT_EQ(cache.trim(2), 0);
  EXPECT_EQ(cache.max_size(), 8);
}

TEST(CachesRotating, R2R3SmallRings) {
  RotatingKVCache cache(6, 2);
  append(cache, numbers(0, 5));
  EXPECT_EQ(append(cache, {5}), numbers(0, 6));
  EXPECT_EQ(append(cache, {6}), (Ids{0, 1, 6, 3, 4, 5}));
  EXPECT_EQ(cache.offset(), 7);
  RotatingKVCache three(3);
  const std::vector<Ids> expected = {{0}, {0, 1}, {0, 1, 2}, {3, 1, 2}, {3, 4, 2}, {3, 4, 5}};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(append(three, {i}), expected[static_cast<std::size_t>(i)]);
  }
}

TEST(CachesRotating, R4R5SeveralRowsAtOnce) {
  RotatingKVCache cache(8, 4);
  for (int i = 0; i < 9; ++i) {
    append(cache, {i});
  }
  EXPECT_EQ(append(cache, {9, 10}), (Ids{0, 1, 2, 3, 6, 7, 8, 9, 10}));
  EXPECT_EQ(cache.meta_state(), (Texts{"4", "8", "11", "9"}));
  EXPECT_EQ(append(cache, {11}), (Ids{0, 1, 2, 3, 11, 8, 9, 10}));
  RotatingKVCache three(8, 4);
  append(three, numbers(0, 3));
  EXPECT_EQ(three.meta_state(), (Texts{"4", "8", "3", "3"}));
}

TEST(CachesRotating, R6PositionsThatDoNotFitChangeNothing) {
  RotatingKVCache cache(8, 4);
  append(cache, {0, 1});
  cache.set_meta_state({"4", "8", "2147483647", "2"});
  for (const Ids& ids : {Ids{1}, Ids{1, 2}}) {
    expect_error(ErrorCode::kInvalidArgument, {}, [&] { append(cache, ids); });
    EXPECT_EQ(cache.meta_state(), (Texts{"4", "8", "2147483647", "2"}));
  }
  cache.set_meta_state({"4", "8", "9", "2"});
  expect_error(ErrorCode::kInvalidArgument, {"offset 9"}, [&] { append(cache, {1}); });
}

TEST(CachesRotating, R7MetaValuesAreAllOrNothing) {
  RotatingKVCache cache(8, 4);
  const auto before = cache.meta_state();
  expect_error(ErrorCode::kCorruptData, {"'x'"}, [&] {
    cache.set_meta_state({"4", "8", "x", "2"});
  });
  EXPECT_EQ(cache.meta_state(), before);
  cache.set_meta_state({"2", "16", "9", "3"});
  EXPECT_EQ(cache.meta_state(), (Texts{"2", "16", "9", "3"}));
}

TEST(CachesRotating, R8AnEmptyRingIsAtTheStart) {
  for (const Texts& meta : {Texts{"4", "8", "5", "5"}, Texts{"0", "8", "0", "3"}}) {
    expect_error(ErrorCode::kCorruptData, {}, [&] { from_state("RotatingKVCache", {}, meta); });
  }
  EXPECT_TRUE(from_state("RotatingKvCache", {}, {"4", "8", "0", "0"})->is_empty());
}

TEST(CachesRotating, FromSerializedIsAllOrNothing) {
  RotatingKVCache cache(8, 4);
  append(cache, numbers(0, 3));
  expect_error(ErrorCode::kCorruptData, {}, [&] {
    cache.from_serialized(pair_of({7, 8}), {"4", "8", "1", "1"});
  });
  expect_error(ErrorCode::kCorruptData, {}, [&] { cache.from_serialized(pair_of({7, 8}), {"4"}); });
  EXPECT_EQ(cache.meta_state(), (Texts{"4", "8", "3", "3"}));
  EXPECT_EQ(state_ids(cache), std::vector<Ids>{numbers(0, 3)});
  cache.from_serialized(pair_of({0, 4, 2, 3}), {"0", "4", "5", "1"});
  EXPECT_EQ(ids_of(cache.in_time_order()->keys), (Ids{4, 2, 3, 0}));
}

TEST(CachesRotating, TracesWhatIsAppended) {
  std::ostringstream lines;
  const auto before = spdlog::default_logger();
  const auto logger = std::make_shared<spdlog::logger>(
      "trace", std::make_shared<spdlog::sinks::ostream_sink_st>(lines)
  );
  spdlog::set_default_logger(logger);
  RotatingKVCache cache(8, 4);
  append(cache, {0});
  EXPECT_EQ(lines.str(), "");
  logger->set_level(spdlog::level::trace);
  append(cache, {1, 2, 3});
  spdlog::set_default_logger(before);
  EXPECT_NE(lines.str().find("3 rows at offset 1, idx 1, max_size 8"), std::string::npos);
}

TEST(CachesRotating, M4SeveralRows) {
  RotatingKVCache cache(8, 4);
  append(cache, {0, 1});
  EXPECT_EQ(bits(cache.make_mask(3)), "causal");
  for (int i = 2; i < 10; ++i) {
    append(cache, {i});
  }
  const auto mask = cache.make_mask(3);
  ASSERT_EQ(mask.kind, Mask::Kind::kArray);
  EXPECT_EQ(mask.array->shape(), (mx::Shape{3, 10}));
  EXPECT_EQ(bits(cache.make_mask(3, 0)), bits(mask));
  EXPECT_EQ(bits(cache.make_mask(3, 8)), bits(mask));
}

TEST(CachesRotating, M5M6OneRow) {
  RotatingKVCache cache(4, 2);
  for (int i = 0; i < 6; ++i) {
    append(cache, {i});
  }
  EXPECT_EQ(bits(cache.make_mask(1, 2)), "1001");
  EXPECT_EQ(bits(cache.make_mask(1, 8)), "none");
  RotatingKVCache eight(8);
  append(eight, {0});
  append(eight, {1});
  append(eight, {2});
  EXPECT_EQ(bits(eight.make_mask(1, 2)), "0011");
}

}  // namespace
}  // namespace saker::caches

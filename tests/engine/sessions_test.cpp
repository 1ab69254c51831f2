// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/rows/sessions.h"

#include "saker/base/error.h"

#include "tests/support/fake_model.h"
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace saker::engine {
namespace {

using saker::testing::FakeModel;
using Ids = std::vector<std::int32_t>;

// A cache with the rows of these tokens.
cache::SequenceCache cache_of(const FakeModel& model, const Ids& tokens) {
  cache::SequenceCache cache = model.make_cache({});
  nn::ForwardContext context({{&cache, static_cast<int>(tokens.size())}});
  model.forward(mx::array(tokens.data(), {static_cast<int>(tokens.size())}, mx::int32), context);
  return cache;
}

// Rows that a session with these tokens gives for a prompt; -1: none.
std::int64_t rows_for(const FakeModel& model, const Ids& held, const Ids& prompt) {
  Sessions sessions;
  sessions.open(Sessions::place_for(1));
  EXPECT_FALSE(sessions.take(1, prompt, {}));
  sessions.give_back(1, held, cache_of(model, held));
  const auto cache = sessions.take(1, prompt, {});
  return cache ? cache->offset() : -1;
}

TEST(Sessions, KeepTheLongestCommonPrefix) {
  const FakeModel model;
  EXPECT_EQ(rows_for(model, {1, 2, 3}, {1, 2, 3, 4, 5}), 3);
  EXPECT_EQ(rows_for(model, {1, 2, 3}, {1, 2, 9, 4}), 2);
  EXPECT_EQ(rows_for(model, {1, 2, 3}, {9, 2, 3}), -1);
  EXPECT_EQ(rows_for(model, {1, 2, 3}, {}), -1);
}

TEST(Sessions, LeaveOneTokenToRun) {
  const FakeModel model;
  EXPECT_EQ(rows_for(model, {1, 2, 3}, {1, 2, 3}), 2);
  EXPECT_EQ(rows_for(model, {1, 2, 3}, {1, 2}), 1);
  EXPECT_EQ(rows_for(model, {1}, {1}), -1);
}

TEST(Sessions, StartAgainWhereRowsCannotBeForgotten) {
  const FakeModel model({.trim_window = 2});
  EXPECT_EQ(rows_for(model, {1, 2, 3}, {1, 2, 9}), -1);
  EXPECT_EQ(rows_for(model, {1, 2, 3}, {1, 2, 3, 4}), 3);
}

TEST(Sessions, OneRequestAtATimeAndOnlyWhileOpen) {
  const FakeModel model;
  Sessions sessions;
  EXPECT_THROW(sessions.take(1, Ids{1}, {}), Error);
  sessions.open(Sessions::place_for(1));
  sessions.take(1, Ids{1}, {});
  EXPECT_THROW(sessions.take(1, Ids{1}, {}), Error);
  sessions.give_back(1, {}, std::nullopt);
  sessions.take(1, Ids{1}, {});
  sessions.close(1);
  sessions.give_back(1, {1, 2}, cache_of(model, {1, 2}));
  EXPECT_THROW(sessions.take(1, Ids{1, 2, 3}, {}), Error);
}

TEST(Sessions, AnotherCacheSizeStartsAgain) {
  const FakeModel model;
  Sessions sessions;
  sessions.open(Sessions::place_for(1));
  sessions.take(1, Ids{1}, {});
  sessions.give_back(1, {1, 2}, cache_of(model, {1, 2}));
  EXPECT_FALSE(sessions.take(1, Ids{1, 2, 3}, {.max_kv_size = 64}));
}

TEST(Sessions, OtherBitsStartAgain) {
  const FakeModel model;
  Sessions sessions;
  sessions.open(Sessions::place_for(1));
  sessions.take(1, Ids{1}, {.kv_bits = 8});
  sessions.give_back(1, {1, 2}, cache_of(model, {1, 2}));
  EXPECT_FALSE(sessions.take(1, Ids{1, 2, 3}, {}));
}

// The last token of an answer has no row.
TEST(Sessions, TokensWithoutRowsAreNotCounted) {
  const FakeModel model;
  Sessions sessions;
  sessions.open(Sessions::place_for(1));
  sessions.take(1, Ids{1}, {});
  sessions.give_back(1, {1, 2, 3, 4}, cache_of(model, {1, 2, 3}));
  EXPECT_EQ(sessions.take(1, Ids{1, 2, 3, 4, 5}, {})->offset(), 3);
}

}  // namespace
}  // namespace saker::engine

// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/pass.h"

#include "saker/base/error.h"

#include "tests/models/random_model.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <vector>

namespace saker::generate {
namespace {

using testing::expect_error;
using Ids = std::vector<std::int32_t>;

bool same(const mx::array& a, const mx::array& b) {
  return mx::array_equal(a, b).item<bool>();
}

// All rows of a block stay, whatever the model would have said after them.
TEST(AcceptAll, KeepsEveryRow) {
  for (const std::string_view type :
       {"llama", "gemma3_text", "qwen3_5", "gemma4_text", "lfm2", "nemotron_h", "kimi_linear"}) {
    SCOPED_TRACE(type);
    const auto config = models::small_config(type);
    const auto model = models::random_model(config, {});
    auto expected_cache = model->make_cache({});
    const auto logits = models::run_rows(*model, expected_cache, {3, 1, 4, 1, 5, 9, 2});
    auto cache = model->make_cache({});
    models::run_rows(*model, cache, {3, 1, 4});
    const std::vector<int> captured{0, 1};
    const auto block = forward_accept_all_block(*model, cache, Ids{1, 5, 9, 2}, captured);
    EXPECT_EQ(cache.offset(), 7);
    EXPECT_TRUE(same(block.logits, mx::slice(logits, {6, 0}, {7, 50})));
    EXPECT_EQ(block.captured.shape(), (mx::Shape{4, 64}));
    // The next block goes on behind it.
    const auto next = forward_accept_all_block(*model, cache, Ids{6});
    EXPECT_TRUE(same(next.logits, models::run_rows(*model, expected_cache, {6})));
    EXPECT_EQ(next.captured.shape(), (mx::Shape{1, 32}));
    EXPECT_TRUE(same(model->unembed(next.captured, {}), next.logits));
  }
}

TEST(AcceptAll, AFailedPassLeavesTheCacheAlone) {
  const auto model = models::random_model(models::small_config("llama"), {});
  auto cache = model->make_cache({});
  models::run_rows(*model, cache, {3, 1, 4});
  expect_error(ErrorCode::kInvalidArgument, {"0 rows"}, [&] {
    forward_accept_all_block(*model, cache, {});
  });
  expect_error(ErrorCode::kInvalidArgument, {"50"}, [&] {
    forward_accept_all_block(*model, cache, Ids{1, 50});
  });
  const std::vector<int> captured{7};
  expect_error(ErrorCode::kInvalidArgument, {"tap"}, [&] {
    forward_accept_all_block(*model, cache, Ids{1}, captured);
  });
  EXPECT_EQ(cache.offset(), 3);
  forward_accept_all_block(*model, cache, Ids{1});
  EXPECT_EQ(cache.offset(), 4);
}

// Caches keep what there is; the token loop must not ask for more.
TEST(PassTransaction, RefusesMoreRowsThanTheSpanHas) {
  const auto model = models::random_model(models::small_config("llama"), {});
  auto cache = model->make_cache({});
  const PassSpan span{.cache = &cache, .tokens = {3, 1}};
  {
    PassTransaction transaction({&span, 1});
    run_rows(*model, {&span, 1});
    expect_error(ErrorCode::kInternal, {"3 rows of a span of 2"}, [&] {
      transaction.commit(0, 3);
    });
    expect_error(ErrorCode::kInternal, {"-1 rows"}, [&] { transaction.commit(0, -1); });
    transaction.commit(0, 1);
    expect_error(ErrorCode::kInternal, {}, [&] { transaction.commit(0, 1); });
  }
  EXPECT_EQ(cache.offset(), 1);
}

}  // namespace
}  // namespace saker::generate

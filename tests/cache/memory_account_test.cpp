// SPDX-License-Identifier: Apache-2.0
// Bytes that caches say they will take, and bytes that the account then has.
#include "saker/kernels/cpu/runtime/memory_account.h"

#include "saker/cache/kv.h"
#include "saker/cache/recurrent.h"

#include "tests/cache/rows.h"
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

namespace saker::cache {
namespace {

using kernels::MemoryAccount;

TEST(MemoryAccount, CachesTakeWhatTheySay) {
  const auto account = std::make_shared<MemoryAccount>();
  const kernels::AccountBinding counted(account);
  std::optional<KVCache> cache(std::in_place, test_shape());
  std::size_t expected = 0;
  for (const int rows : {1, 62, 1, 1, 200, 64}) {
    expected += cache->growth(rows);
    pass(*cache, rows);
    EXPECT_EQ(account->bytes(), expected) << rows;
  }
  EXPECT_EQ(account->bytes(), cache->bytes_with(329, 512));
  // A copy shares all pages; the first row of either copies the last page.
  const auto copy = cache->copy();
  EXPECT_EQ(account->bytes(), expected);
  const std::size_t page = cache->growth(1);
  EXPECT_GT(page, 0U);
  pass(*cache, 1);
  EXPECT_EQ(account->bytes(), expected + page);
  EXPECT_EQ(copy->growth(1), 0U);
  cache.reset();
  EXPECT_EQ(account->bytes(), expected);
  EXPECT_EQ(account->peak(), expected + page);
}

TEST(MemoryAccount, StatesCountOnce) {
  const auto account = std::make_shared<MemoryAccount>();
  const kernels::AccountBinding counted(account);
  constexpr std::size_t kState = 6 * sizeof(float);
  RecurrentCache cache({mx::zeros({2, 3})});
  EXPECT_EQ(account->bytes(), kState);
  EXPECT_EQ(cache.growth(5), kState);
  cache.begin();
  cache.advance(5, {mx::ones({2, 3})}, nullptr);
  EXPECT_EQ(account->bytes(), 2 * kState);
  cache.commit(5);
  EXPECT_EQ(account->bytes(), kState);
  const auto snapshot = cache.snapshot(0);
  EXPECT_EQ(account->bytes(), kState);
  cache.clear();
  EXPECT_EQ(account->bytes(), 2 * kState);
}

TEST(MemoryAccount, MemoryCountsUntilItIsGivenBackAnywhere) {
  const auto account = std::make_shared<MemoryAccount>();
  auto cache = std::make_unique<KVCache>(test_shape());
  {
    const kernels::AccountBinding counted(account);
    pass(*cache, 10);
    const kernels::AccountBinding uncounted(nullptr);
    pass(*cache, 100);
  }
  const std::size_t bytes = account->bytes();
  EXPECT_GT(bytes, 0U);
  EXPECT_LT(bytes, cache->bytes_with(110, 512));
  std::thread([&cache] { cache.reset(); }).join();
  EXPECT_EQ(account->bytes(), 0U);
}

}  // namespace
}  // namespace saker::cache

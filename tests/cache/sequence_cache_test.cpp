// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/sequence_cache.h"

#include "saker/base/error.h"
#include "saker/cache/kv.h"
#include "saker/cache/recurrent.h"
#include "saker/cache/summary.h"
#include "saker/cache/window.h"

#include "tests/cache/rows.h"
#include <gtest/gtest.h>

namespace saker::cache {
namespace {

SequenceCache mixed_cache() {
  std::vector<std::unique_ptr<LayerCache>> layers;
  layers.push_back(std::make_unique<KVCache>(test_shape()));
  layers.push_back(std::make_unique<WindowCache>(test_shape(), 4));
  return SequenceCache(std::move(layers));
}

void update_all(SequenceCache& cache, int count) {
  for (int i = 0; i < cache.layer_count(); ++i) {
    update(cache.layer(i), count);
  }
}

TEST(SequenceCache, NeedsALayer) {
  EXPECT_THROW(SequenceCache({}), Error);
}

TEST(SequenceCache, CommitsAllLayers) {
  auto cache = mixed_cache();
  cache.begin();
  update_all(cache, 6);
  cache.commit(5);
  EXPECT_EQ(cache.offset(), 5);
  EXPECT_TRUE(same_rows(*cache.layer(0).view(), numbers(0, 5)));
  EXPECT_TRUE(same_rows(*cache.layer(1).view(), numbers(1, 4)));
  EXPECT_EQ(cache.nbytes(), cache.layer(0).nbytes() + cache.layer(1).nbytes());
}

TEST(SequenceCache, CommitsAtMostWhatWasWritten) {
  auto cache = mixed_cache();
  cache.begin();
  update_all(cache, 3);
  cache.commit(99);
  EXPECT_EQ(cache.offset(), 3);
  EXPECT_EQ(cache.layer(1).offset(), 3);
  cache.begin();
  update_all(cache, 2);
  cache.commit(-4);
  EXPECT_EQ(cache.offset(), 3);
  EXPECT_THROW(cache.commit(0), Error);
}

TEST(SequenceCache, ClearForgetsAllLayers) {
  auto cache = mixed_cache();
  update_all(cache, 90);
  const auto rows = cache.snapshot(0);
  EXPECT_EQ(rows->nbytes(), rows->layers()[0]->nbytes() + rows->layers()[1]->nbytes());
  cache.begin();
  EXPECT_THROW(cache.clear(), Error);
  cache.roll_back();
  cache.clear();
  EXPECT_EQ(cache.offset(), 0);
  EXPECT_TRUE(cache.layer(1).is_empty());
  EXPECT_EQ(cache.nbytes(), mixed_cache().nbytes());
}

TEST(SequenceCache, CommitChangesNothingWhenALayerLacksRows) {
  auto cache = mixed_cache();
  cache.begin();
  update(cache.layer(0), 3);
  update(cache.layer(1), 1);
  EXPECT_THROW(cache.commit(3), Error);
  EXPECT_THROW(cache.commit(99), Error);
  cache.roll_back();
  EXPECT_EQ(cache.layer(0).offset(), 0);
  EXPECT_EQ(cache.layer(1).offset(), 0);
}

TEST(SequenceCache, TrimsAllLayersOrNone) {
  auto cache = mixed_cache();
  update_all(cache, 3);
  EXPECT_TRUE(cache.trim(1));
  EXPECT_EQ(cache.layer(1).offset(), 2);
  update_all(cache, 8);
  EXPECT_FALSE(cache.can_trim(1));
  EXPECT_FALSE(cache.trim(1));
  EXPECT_EQ(cache.layer(0).offset(), 10);
}

TEST(SequenceCache, TheSummarySaysWhatEachLayerHolds) {
  const RecurrentState empty = {mx::zeros({3, 5}), mx::zeros({2, 4, 6})};
  std::vector<std::unique_ptr<LayerCache>> layers;
  layers.push_back(std::make_unique<KVCache>(test_shape()));
  layers.push_back(std::make_unique<RecurrentCache>(empty));
  layers.push_back(std::make_unique<WindowCache>(test_shape(), 4));
  update(*layers[0], 7);
  update(*layers[2], 7);
  auto* recurrent = dynamic_cast<RecurrentCache*>(layers[1].get());
  const SequenceCache cache(std::move(layers));
  EXPECT_EQ(cache_summary(cache), "0:kv=7 1:ssm=None 2:kv=7");
  recurrent->assign_state(7, empty);
  EXPECT_EQ(cache_summary(cache), "0:kv=7 1:ssm=(2, 4, 6) 2:kv=7");
}

TEST(SequenceCache, CopyIsIndependent) {
  auto cache = mixed_cache();
  update_all(cache, 10);
  auto other = cache.copy();
  update_all(cache, 1);
  EXPECT_EQ(other.offset(), 10);
  EXPECT_TRUE(same_rows(*other.layer(1).view(), numbers(6, 4)));
}

}  // namespace
}  // namespace saker::cache

// SPDX-License-Identifier: Apache-2.0
// A pass that fails while its first layers run: whoever gives caches back finds nothing running.
#include "saker/cache/kv.h"
#include "saker/nn/forward_context.h"

#include "tests/models/random_model.h"
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

namespace saker::models {
namespace {

constexpr int kLayers = 6;
constexpr int kHeadDim = 64;

Json wide_config() {
  auto config = small_config("llama");
  config["num_hidden_layers"] = kLayers;
  config["hidden_size"] = 512;
  config["head_dim"] = kHeadDim;
  return config;
}

// Caches of all layers but the last, which therefore fails.
cache::SequenceCache short_cache(const Json& config) {
  kernels::KvShape shape;
  shape.kv_heads = config["num_key_value_heads"].get<int>();
  shape.head_dim = kHeadDim;
  shape.value_head_dim = kHeadDim;
  std::vector<std::unique_ptr<cache::LayerCache>> layers;
  for (int i = 0; i + 1 < kLayers; ++i) {
    layers.push_back(std::make_unique<cache::KVCache>(shape));
  }
  return cache::SequenceCache(std::move(layers));
}

struct Pass {
  int row_count = 0;
  int last_begun = 0;  // The last layer that began to run before another one failed.
};

class FailedPass : public ::testing::TestWithParam<Pass> {};

TEST_P(FailedPass, HasEndedWhenItsContextGoes) {
  const auto [row_count, last_begun] = GetParam();
  const auto config = wide_config();
  const auto model = random_model(config, {});
  auto cache = short_cache(config);
  for (int round = 0; round < 5; ++round) {
    std::optional<mx::array> begun;
    cache.begin();
    {
      nn::ForwardContext context({{&cache, row_count}});
      context.captured_layers = {last_begun};
      EXPECT_THROW(model->forward(mx::full({row_count}, 7, mx::int32), context), std::out_of_range);
      begun = context.captured.at(last_begun);
    }
    EXPECT_TRUE(begun->is_available());
    cache.roll_back();
    EXPECT_EQ(cache.offset(), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, FailedPass, ::testing::Values(Pass{1, 1}, Pass{16, 1}, Pass{512, kLayers - 2})
);

}  // namespace
}  // namespace saker::models

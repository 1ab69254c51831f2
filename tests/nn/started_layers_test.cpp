// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/started_layers.h"

#include <gtest/gtest.h>

#include <utility>

namespace saker::nn {
namespace {

// Takes a while to compute.
mx::array slow() {
  const mx::array x = mx::full({200, 200}, 0.5F);
  return mx::sum(mx::exp(mx::matmul(x, mx::matmul(x, x))), 1);
}

TEST(StartedLayers, WaitsForAllBeforeItGoes) {
  const mx::array sum = slow();
  const mx::array normed = slow();
  {
    StartedLayers started;
    started.start(sum, normed);
  }
  EXPECT_TRUE(sum.is_available());
  EXPECT_TRUE(normed.is_available());
}

TEST(StartedLayers, WaitsForTheFirstOfThem) {
  const mx::array first = slow();
  const mx::array second = slow();
  StartedLayers started;
  started.start(first, first);
  started.start(second, second);
  started.wait_until(1);
  EXPECT_TRUE(first.is_available());
  started.wait_until(0);
  EXPECT_TRUE(second.is_available());
}

TEST(StartedLayers, AMovedOneWaits) {
  const mx::array sum = slow();
  {
    StartedLayers started;
    started.start(sum, sum);
    const StartedLayers other(std::move(started));
  }
  EXPECT_TRUE(sum.is_available());
}

}  // namespace
}  // namespace saker::nn

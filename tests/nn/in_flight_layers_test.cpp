// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/in_flight_layers.h"

#include "saker/kernels/ops/cpu_operation.h"

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <new>
#include <utility>
#include <vector>

namespace saker::nn {
namespace {

// Takes a while to compute.
mx::array slow() {
  const mx::array x = mx::full({200, 200}, 0.5F);
  return mx::sum(mx::exp(mx::matmul(x, mx::matmul(x, x))), 1);
}

TEST(InFlightLayers, WaitsForAllBeforeItGoes) {
  const mx::array sum = slow();
  const mx::array normed = slow();
  {
    InFlightLayers started;
    started.start(sum, normed);
  }
  EXPECT_TRUE(sum.is_available());
  EXPECT_TRUE(normed.is_available());
}

TEST(InFlightLayers, WaitsForTheFirstOfThem) {
  const mx::array first = slow();
  const mx::array second = slow();
  InFlightLayers started;
  started.start(first, first);
  started.start(second, second);
  started.wait_until(1);
  EXPECT_TRUE(first.is_available());
  started.wait_until(0);
  EXPECT_TRUE(second.is_available());
}

TEST(InFlightLayers, AMovedOneWaits) {
  const mx::array sum = slow();
  {
    InFlightLayers started;
    started.start(sum, sum);
    const InFlightLayers other(std::move(started));
  }
  EXPECT_TRUE(sum.is_available());
}

// Fails once it runs, as what finds no memory does.
struct FailingBody {
  std::function<void()> operator()(
      const std::vector<mx::array>& /*inputs*/, std::vector<mx::array>& /*outputs*/
  ) const {
    return [] { throw std::bad_alloc(); };
  }
};

mx::array failing() {
  return kernels::cpu_operation("Fails", mx::Shape{4}, {}, FailingBody{});
}

TEST(InFlightLayers, ThrowsWhatALayerThrew) {
  const mx::array x = failing();
  const mx::array before = slow();  // Else it may have failed while it is started.
  InFlightLayers started;
  started.start(before, before);
  started.start(x, x);
  EXPECT_THROW(started.wait_until(0), std::exception);
}

TEST(InFlightLayers, WhatALayerThrewGoesToWhoEvaluatesThePass) {
  const mx::array first = failing();
  const mx::array second = slow();
  {
    InFlightLayers started;
    started.start(second, second);
    // Whichever of both MLX tells: what failed already ends the next call that begins anything.
    EXPECT_THROW(
        {
          started.start(first, first);
          mx::eval(mx::add(first, first));
        },
        std::exception
    );
  }
  EXPECT_TRUE(second.is_available());
}

TEST(InFlightLayers, GoesAfterAFailureThatNobodyAskedFor) {
  const mx::array x = failing();
  const mx::array before = slow();
  InFlightLayers started;
  started.start(before, before);
  started.start(x, x);
}

}  // namespace
}  // namespace saker::nn

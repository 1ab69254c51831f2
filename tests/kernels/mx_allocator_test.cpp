// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/mx.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <new>

namespace saker {
namespace {

// No machine has so many addresses.
mx::Shape too_large() {
  return {1 << 30, 1 << 26};
}

TEST(MxAllocator, AnArrayWithoutMemoryIsAnError) {
  EXPECT_THROW(mx::allocator::malloc(std::size_t{1} << 58), std::bad_alloc);
}

TEST(MxAllocator, AnOperationOfMlxWithoutMemoryIsAnError) {
  const auto x = mx::array({1.0F, 2.0F}, {2, 1});
  EXPECT_THROW(
      mx::eval(mx::exp(mx::contiguous(mx::broadcast_to(mx::array(1.0F), too_large())))),
      std::bad_alloc
  );
  EXPECT_EQ(mx::sum(x).item<float>(), 3.0F);  // Later work goes on.
}

}  // namespace
}  // namespace saker

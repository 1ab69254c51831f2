// SPDX-License-Identifier: Apache-2.0
#include "saker/base/portable_math.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>

namespace saker {
namespace {

double ulps(double got, double expected) {
  const double next = std::nextafter(std::abs(expected), std::numeric_limits<double>::infinity());
  return std::abs(got - expected) / (next - std::abs(expected));
}

// The C library's results are within one unit of the truth.
TEST(PortableMath, ExpIsNearTheTruth) {
  for (int i = -70000; i <= 70000; ++i) {
    const double x = i * 0.01007;
    EXPECT_LE(ulps(portable_exp(x), std::exp(x)), 3.0) << x;
  }
  EXPECT_EQ(portable_exp(0.0), 1.0);
  EXPECT_LT(portable_exp(-1e300), 1e-300);
  EXPECT_LT(portable_exp(-std::numeric_limits<double>::infinity()), 1e-300);
  EXPECT_LT(portable_exp(std::numeric_limits<double>::quiet_NaN()), 1e-300);
}

TEST(PortableMath, LogIsNearTheTruth) {
  for (int i = 1; i <= 100000; ++i) {
    for (const double x :
         {i * 1e-5, 1.0 + i * 1e-9, 1.0 - i * 1e-9, i * 7.3, std::ldexp(i, -300)}) {
      EXPECT_LE(ulps(portable_log(x), std::log(x)), 3.0) << x;
    }
  }
  EXPECT_EQ(portable_log(1.0), 0.0);
  EXPECT_EQ(portable_log(1.0 - 0x1p-53), -0x1p-53);
}

RC_GTEST_PROP(PortableMath, LogUndoesExp, ()) {
  const double x = *rc::gen::inRange(-7000000, 7000000) * 1e-4;
  RC_ASSERT(std::abs(portable_log(portable_exp(x)) - x) <= 1e-13 * (1.0 + std::abs(x)));
}

}  // namespace
}  // namespace saker

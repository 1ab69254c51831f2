// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/arrange_columns.h"

#include "saker/base/error.h"

#include "tests/kernels/rows.h"
#include <gtest/gtest.h>

#include <vector>

namespace saker::kernels {
namespace {

TEST(ArrangeColumns, IsTheReference) {
  const std::vector<ColumnRange> ranges{{30, 7}, {0, 1}, {5, 20}, {39, 1}, {8, 0}};
  for (const int rows : {1, 3, 200}) {
    const auto x = random_rows(rows, 40, 3);
    const auto got = arrange_columns(x, ranges);
    EXPECT_EQ(got.shape(), (mx::Shape{rows, 29}));
    EXPECT_EQ(to_vector(got), to_vector(arrange_columns_reference(x, ranges)));
  }
}

TEST(ArrangeColumns, ReadsStridedRows) {
  const auto x = mx::transpose(random_rows(6, 9, 1));
  const std::vector<ColumnRange> ranges{{4, 2}, {0, 3}};
  EXPECT_EQ(
      to_vector(arrange_columns(x, ranges)), to_vector(arrange_columns(mx::contiguous(x), ranges))
  );
}

TEST(ArrangeColumns, RefusesRangesOutside) {
  const auto x = random_rows(2, 5, 1);
  EXPECT_THROW(arrange_columns(x, {{4, 2}}), Error);
  EXPECT_THROW(arrange_columns(x, {{-1, 2}}), Error);
}

}  // namespace
}  // namespace saker::kernels

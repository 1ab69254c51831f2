// SPDX-License-Identifier: Apache-2.0
#include "saker/server/http/query.h"

#include <gtest/gtest.h>

#include <optional>

namespace saker::server::http {
namespace {

TEST(QueryTest, ValuesByName) {
  EXPECT_EQ(query_value("model=a&level=1", "level"), "1");
  EXPECT_EQ(query_value("model=org%2Fname", "model"), "org/name");
  EXPECT_EQ(query_value("model=a+b", "model"), "a b");
  EXPECT_EQ(query_value("model=a&model=b", "model"), "a");
  EXPECT_EQ(query_value("model=", "model"), "");
  EXPECT_EQ(query_value("model", "model"), "");
  EXPECT_EQ(query_value("mode=a&&=b", "model"), std::nullopt);
  EXPECT_EQ(query_value("", "model"), std::nullopt);
  EXPECT_EQ(query_value("model=%2", "model"), std::nullopt);
  EXPECT_EQ(query_value("model=%zz", "model"), std::nullopt);
}

}  // namespace
}  // namespace saker::server::http

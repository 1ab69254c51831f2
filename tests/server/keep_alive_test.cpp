// SPDX-License-Identifier: Apache-2.0
#include "saker/server/models/keep_alive.h"

#include "saker/base/error.h"
#include "saker/server/turns/api_error.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <chrono>

namespace saker::server {
namespace {

using std::chrono::milliseconds;

TEST(KeepAliveTest, DurationsAndSeconds) {
  EXPECT_EQ(parse_keep_alive("5m"), milliseconds(300'000));
  EXPECT_EQ(parse_keep_alive("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(parse_keep_alive("1.5s"), milliseconds(1500));
  EXPECT_EQ(parse_keep_alive("300ms"), milliseconds(300));
  EXPECT_EQ(parse_keep_alive("90"), milliseconds(90'000));
  EXPECT_EQ(parse_keep_alive("0"), milliseconds(0));
  EXPECT_EQ(parse_keep_alive("0s"), milliseconds(0));
  EXPECT_EQ(parse_keep_alive("-1"), std::nullopt);
  EXPECT_EQ(parse_keep_alive("-1m"), std::nullopt);
  EXPECT_EQ(parse_keep_alive("9999999999h"), std::nullopt) << "as good as for ever";
  for (const char* wrong :
       {"", "soon", "m", "5x", "5 m", "--1", "1e400", "nan", "inf", "0x5", "5m3"}) {
    testing::expect_error(ErrorCode::kInvalidArgument, {"seconds"}, [&] {
      parse_keep_alive(wrong);
    });
  }
}

TEST(KeepAliveTest, MembersOfABody) {
  using engine::KeepAlive;
  EXPECT_EQ(read_keep_alive({{"model", "a"}}), std::nullopt);
  EXPECT_EQ(read_keep_alive({{"keep_alive", nullptr}}), std::nullopt);
  EXPECT_EQ(read_keep_alive({{"keep_alive", "5m"}}), KeepAlive(milliseconds(300'000)));
  EXPECT_EQ(read_keep_alive({{"keep_alive", 0.5}}), KeepAlive(milliseconds(500)));
  EXPECT_EQ(read_keep_alive({{"keep_alive", 0}, {"ttl", 5}}), KeepAlive(milliseconds(0)));
  EXPECT_EQ(read_keep_alive({{"ttl", 5}}), KeepAlive(milliseconds(5000)));
  const auto for_ever = read_keep_alive({{"keep_alive", -1}});
  ASSERT_TRUE(for_ever.has_value());
  EXPECT_FALSE(for_ever->has_value());
  EXPECT_THROW(read_keep_alive({{"keep_alive", "soon"}}), ApiError);
  EXPECT_THROW(read_keep_alive({{"keep_alive", Json::array()}}), ApiError);
  EXPECT_THROW(read_keep_alive({{"ttl", true}}), ApiError);
}

}  // namespace
}  // namespace saker::server

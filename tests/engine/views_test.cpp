// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/views.h"

#include "saker/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace saker::engine {
namespace {

using ::testing::HasSubstr;

std::vector<NamedAdapter> adapters() {
  return {{"law", "/a/law"}, {"", "/a/other"}};
}

TEST(Views, AreNamedByTheirKey) {
  const View base = parse_view("base", {});
  EXPECT_TRUE(base.adapter.empty());
  EXPECT_EQ(view_id(base), "base");

  const View tuned = parse_view("ft", adapters());
  EXPECT_EQ(tuned.adapter, "/a/law");
  EXPECT_EQ(tuned.strength, 1.0);
  EXPECT_EQ(view_id(tuned), "ft");

  const View scaled = parse_view("0.5", adapters());
  EXPECT_EQ(scaled.key, "0.5");
  EXPECT_EQ(scaled.strength, 0.5);
  EXPECT_EQ(view_id(scaled), "scaled_0.50");
  EXPECT_EQ(parse_view("-1", adapters()).strength, -1.0);

  EXPECT_EQ(view_id(parse_view("1", adapters())), "scaled_1.00");

  EXPECT_EQ(parse_view("law", adapters()).strength, 1.0);
  EXPECT_EQ(view_id(parse_view("law", adapters())), "ft");
  EXPECT_EQ(view_id(parse_view("law@1", adapters())), "scaled_1.00");
  EXPECT_EQ(parse_view("law@0.25", adapters()).strength, 0.25);
}

TEST(Views, NullsHaveAllTheirParameters) {
  const View null = parse_view("null:7", adapters());
  EXPECT_EQ(null.null->seed, 7U);
  EXPECT_EQ(null.null->init_scale, 0.02);
  EXPECT_EQ(null.null->rank_scale, 1.0);
  EXPECT_EQ(view_id(null), "null_7");
  const View all = parse_view("null:18446744073709551615:0.1:2", adapters());
  EXPECT_EQ(all.null->seed, 18446744073709551615U);
  EXPECT_EQ(all.null->init_scale, 0.1);
  EXPECT_EQ(all.null->rank_scale, 2.0);
  EXPECT_EQ(view_id(all), "null_18446744073709551615_init0.10_rank2.00");
}

TEST(Views, OfOtherNumbersAndAdaptersHaveOtherIds) {
  const std::vector<NamedAdapter> both = {{"law", "/a/law"}, {"top", "/a/top"}};
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"law", "ft"},
      {"top", "ft:top"},
      {"0.501", "scaled_0.501"},
      {"law@0.5", "scaled_0.50"},
      {"top@0.5", "scaled_0.50:top"},
      {"top@1", "scaled_1.00:top"},
      {"null:7:0.1", "null_7_init0.10"},
      {"null:7:0.001:2.0625", "null_7_init0.001_rank2.0625"},
  };
  for (const auto& [key, id] : expected) {
    EXPECT_EQ(view_id(parse_view(key, both)), id);
  }
}

TEST(Views, OthersAreRefused) {
  for (const char* key :
       {"",
        "bass",
        "law@",
        "law@x",
        "law@nan",
        "nan",
        "inf",
        "0.5x",
        "null",
        "null:",
        "null:-1",
        "null:x",
        "null:1:0",
        "null:1:0.02:0",
        "null:1:0.02:-1",
        "null:1:0.02:nan",
        "null:1:inf",
        "null:1:1:1:1",
        "@0.5"}) {
    EXPECT_THROW(parse_view(key, adapters()), Error) << key;
  }
  try {
    parse_view("ft", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("needs an adapter"));
  }
}

}  // namespace
}  // namespace saker::engine

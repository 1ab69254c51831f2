// SPDX-License-Identifier: Apache-2.0
#include "saker/server/trace_context.h"

#include <gtest/gtest.h>

#include <string>

namespace saker::server {
namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kParent = "00f067aa0ba902b7";

TEST(TraceContext, ReadsTheHeader) {
  const auto found = read_trace_context("00-" + kTrace + "-" + kParent + "-01");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->trace, kTrace);
  EXPECT_EQ(found->parent, kParent);
  EXPECT_EQ(found->header("1234567812345678"), "00-" + kTrace + "-1234567812345678-01");
  EXPECT_TRUE(read_trace_context("cc-" + kTrace + "-" + kParent + "-01-later"));
}

TEST(TraceContext, IgnoresInvalidOnes) {
  const std::string zeros(32, '0');
  for (const std::string& header :
       {std::string(),
        "00-" + kTrace + "-" + kParent + "-0",
        "00-" + kTrace + "-" + kParent + "-01-more",
        "00-" + kTrace + "-" + kParent + "-0g",
        "ff-" + kTrace + "-" + kParent + "-01",
        "00-" + zeros + "-" + kParent + "-01",
        "00-" + kTrace + "-" + zeros.substr(0, 16) + "-01",
        "00_" + kTrace + "-" + kParent + "-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + kParent + "-01",
        "00-" + kTrace + "\r\n" + kParent + "-01"}) {
    EXPECT_FALSE(read_trace_context(header)) << header;
  }
}

TEST(TraceContext, SpansAreNew) {
  const std::string span = new_span();
  EXPECT_EQ(span.size(), 16U);
  EXPECT_EQ(span.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(span, new_span());
}

}  // namespace
}  // namespace saker::server

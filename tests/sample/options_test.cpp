// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/options.h"

#include "saker/base/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace saker::sample {
namespace {

std::string refusal(const SamplingOptions& options) {
  try {
    check_options(options, 100);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "";
}

TEST(Options, DefaultsAndBordersAreFine) {
  EXPECT_EQ(refusal({}), "");
  SamplingOptions options;
  options.temperature = 100.0;
  options.top_p = 0.0;
  options.min_p = 1.0;
  options.min_tokens_to_keep = 100;
  options.xtc_threshold = 0.5;
  options.logit_bias = {{0, -100.0}, {99, 100.0}};
  EXPECT_EQ(refusal(options), "");
}

TEST(Options, RefusalsNameOptionValueAndRange) {
  using testing::AllOf;
  using testing::HasSubstr;
  const auto refused = [](auto member, auto value) {
    SamplingOptions options;
    options.*member = value;
    return refusal(options);
  };
  EXPECT_THAT(
      refused(&SamplingOptions::temperature, -1.0),
      AllOf(HasSubstr("temperature"), HasSubstr("-1"), HasSubstr("from 0 to 100"))
  );
  EXPECT_THAT(refused(&SamplingOptions::temperature, std::nan("")), HasSubstr("temperature"));
  EXPECT_THAT(refused(&SamplingOptions::top_p, 1.5), AllOf(HasSubstr("top_p"), HasSubstr("1.5")));
  EXPECT_THAT(refused(&SamplingOptions::min_p, -0.1), HasSubstr("min_p"));
  EXPECT_THAT(refused(&SamplingOptions::min_tokens_to_keep, 0), HasSubstr("min_tokens_to_keep"));
  EXPECT_THAT(refused(&SamplingOptions::top_k, -5), AllOf(HasSubstr("top_k"), HasSubstr("-5")));
  EXPECT_THAT(refused(&SamplingOptions::xtc_probability, 2.0), HasSubstr("xtc_probability"));
  EXPECT_THAT(refused(&SamplingOptions::xtc_threshold, 0.6), HasSubstr("xtc_threshold"));
  EXPECT_THAT(refused(&SamplingOptions::repetition_penalty, -1.0), HasSubstr("repetition_penalty"));
  EXPECT_THAT(
      refused(&SamplingOptions::presence_penalty, std::numeric_limits<double>::infinity()),
      HasSubstr("presence_penalty")
  );
  EXPECT_THAT(
      refused(&SamplingOptions::frequency_context_size, -1), HasSubstr("frequency_context")
  );
  SamplingOptions options;
  options.logit_bias = {{100, 1.0}};
  EXPECT_THAT(refusal(options), AllOf(HasSubstr("logit_bias"), HasSubstr("100"), HasSubstr("99")));
  options.logit_bias = {{1, 1e300}};
  EXPECT_THAT(refusal(options), HasSubstr("finite"));
}

}  // namespace
}  // namespace saker::sample

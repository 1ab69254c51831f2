// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/requests/modelfile_options.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <string>

namespace saker::cli {
namespace {

using saker::testing::expect_error;

TEST(ModelfileOptions, GoByTheirNamesAndOurs) {
  const auto [options, warnings] = options_of({
      {"num_predict", "42"},
      {"temperature", "0.5"},
      {"top_k", "20"},
      {"repeat_penalty", "1.1"},
      {"repeat_last_n", "-1"},
      {"stop", "<|im_end|>"},
      {"stop", "7"},
      {"min_tokens", "2"},
      {"think", "off"},
      {"ignore_eos", "true"},
      {"logit_bias", R"({"4": -1})"},
  });
  EXPECT_TRUE(warnings.empty());
  EXPECT_EQ(
      options,
      (Json{
          {"max_tokens", 42},
          {"temperature", 0.5},
          {"top_k", 20},
          {"repetition_penalty", 1.1},
          {"repetition_context_size", 0},
          {"stop", {"<|im_end|>", "7"}},
          {"min_tokens", 2},
          {"think", "off"},
          {"ignore_eos", true},
          {"logit_bias", {{"4", -1}}},
      })
  );
}

TEST(ModelfileOptions, TranslateWhatMeansSomethingElse) {
  EXPECT_EQ(options_of({{"repeat_last_n", "0"}}).options, (Json{{"repetition_penalty", 1.0}}));
  EXPECT_EQ(options_of({{"num_predict", "-1"}}).options.at("max_tokens"), -1);
}

TEST(ModelfileOptions, WarnOfWhatIsNotHere) {
  const auto [options, warnings] = options_of({{"num_ctx", "4096"}, {"seed", "1"}});
  EXPECT_EQ(options, (Json{{"seed", 1}}));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("num_ctx"), std::string::npos);
}

TEST(ModelfileOptions, RefuseWhatNobodyKnows) {
  for (const load::Modelfile::Parameter& parameter : std::vector<load::Modelfile::Parameter>{
           {"colour", "1"},
           {"temperature", "hot"},
           {"temperature", "-1"},
           {"top_p", "7"},
           {"seed", "1.5"},
           {"adapter", "/etc"},
           {"messages", "[]"},
           {"prompt", "x"},
           {"id", "1"},
       }) {
    expect_error(ErrorCode::kInvalidArgument, {"PARAMETER", parameter.name}, [&] {
      options_of({parameter});
    });
  }
}

}  // namespace
}  // namespace saker::cli

// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/io/result_json.h"

#include "saker/engine/records/result_json.h"

#include <gtest/gtest.h>

#include <limits>

namespace saker::cli {
namespace {

TEST(ResultJson, GenerateFollowsTheContract) {
  engine::GenerateResult result;
  result.prompt_tokens = {1};
  result.tokens = {2};
  result.text = "a\"b";
  result.finish_reason = engine::FinishReason::kStop;
  result.logprobs = {{2, -std::numeric_limits<double>::infinity(), {{3, -0.5}}}};
  EXPECT_EQ(
      dump_line(to_json(result, true)),
      "{\"prompt_tokens\":[1],\"tokens\":[2],\"text\":\"a\\\"b\",\"finish_reason\":\"stop\","
      "\"logprobs\":[{\"token\":2,\"logprob\":null,\"top\":[[3,-0.5]]}],"
      "\"stats\":{\"prompt_tokens\":0,\"prompt_tps\":0.0,\"generation_tokens\":0,\"generation_"
      "tps\":0.0,"
      "\"time_to_first_token_s\":0.0,\"peak_memory_bytes\":0,\"drafter\":\"none\",\"rounds\":0,"
      "\"drafted\":0,"
      "\"accepted\":0,\"cached_tokens\":0}}\n"
  );
  EXPECT_FALSE(to_json(result, false).contains("logprobs"));
}

TEST(ResultJson, ScoreFollowsTheContract) {
  engine::ScoreResult result;
  result.tokens = {1, 2};
  result.views.push_back(
      {.view = "base", .logprobs = {std::nullopt, -1.5}, .sum = -1.5, .mean = -1.5}
  );
  result.views[0].next = score::NextDistribution{{4}, {-0.25}, 0.0, true, 10};
  EXPECT_EQ(
      to_json(result).dump(),
      "{\"tokens\":[1,2],\"views\":{\"base\":{\"logprobs\":[null,-1.5],\"sum\":-1.5,\"mean\":-1.5,"
      "\"is_greedy\":false,\"boundary_merged\":false,\"first_token_unscored\":false,\"next\":{"
      "\"token_ids\":[4],\"logprobs\":[-0."
      "25],"
      "\"tail_logprob\":0.0,\"tail_underflow\":true,\"vocab_size\":10}}}}"
  );
}

TEST(ResultJson, SpreadOfOddAndEvenCounts) {
  EXPECT_EQ(spread_json({3, 1, 2}).dump(), R"({"min":1.0,"median":2.0,"max":3.0})");
  EXPECT_EQ(spread_json({4, 1}).dump(), R"({"min":1.0,"median":2.5,"max":4.0})");
}

TEST(ResultJson, BrokenTextIsStillOneJsonLine) {
  EXPECT_EQ(dump_line({{"t", "a\xff\n"}}), "{\"t\":\"a\xEF\xBF\xBD\\n\"}\n");
}

}  // namespace
}  // namespace saker::cli

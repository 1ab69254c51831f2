// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/score/kept_answer.h"

#include "saker/base/error.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

namespace saker::cli {
namespace {

AskedRecord asked(Json id = Json(Json::value_t::discarded)) {
  return {std::move(id), 3, [] { return engine::ScorePrompt{.tokens = {5, 6}}; }};
}

AskedRecord broken() {
  return {{}, 3, []() -> engine::ScorePrompt { throw Error(ErrorCode::kInvalidArgument, "no"); }};
}

Json line(std::string_view text) {
  return parse_json(text, "test");
}

constexpr std::string_view kAnswer =
    R"({"tokens": [5, 6], "views": {"base": {"logprobs": [null, -1.5], "sum": -1.5}}})";

TEST(KeptAnswer, AnswersItsRecordAlone) {
  EXPECT_TRUE(answers(line(kAnswer), asked()));
  EXPECT_FALSE(answers(line(kAnswer), asked("a")));
  Json named = line(kAnswer);
  named["id"] = "a";
  EXPECT_TRUE(answers(named, asked("a")));
  EXPECT_FALSE(answers(named, asked()));
  Json other = line(kAnswer);
  other["tokens"] = {5, 7};
  EXPECT_FALSE(answers(other, asked()));
}

TEST(KeptAnswer, OfARecordThatCannotBeScoredIsAFailure) {
  EXPECT_FALSE(answers(line(kAnswer), broken()));
  EXPECT_TRUE(answers(line(R"({"id": null, "error": {"line": 3}})"), broken()));
  EXPECT_FALSE(answers(line(R"({"id": null, "error": {"line": 4}})"), broken()));
}

TEST(KeptAnswer, OtherLinesAnswerNothing) {
  for (const std::string_view text :
       {"null",
        "[]",
        "{}",
        R"({"error": "text"})",
        R"({"tokens": [5, 6]})",
        R"({"tokens": [5, 6], "views": 7})",
        R"({"tokens": [5, 6], "views": {"base": {"logprobs": {"a": 1}, "sum": 0}}})"}) {
    EXPECT_FALSE(answers(line(text), asked())) << text;
  }
}

TEST(KeptAnswer, FitsOptionsWithTheSameCandidates) {
  engine::ScoreRequest options{.views = {{.key = "base"}}};
  EXPECT_TRUE(fits_options(line(kAnswer), options, WithDifferences::kNo));
  EXPECT_FALSE(fits_options(line(kAnswer), options, WithDifferences::kYes));
  options.top_k = 2;
  EXPECT_FALSE(fits_options(line(kAnswer), options, WithDifferences::kNo));
  Json kept = line(kAnswer);
  Json& next = kept["views"]["base"]["next"];
  next = {{"token_ids", {8, 9}}, {"vocab_size", 40}};
  EXPECT_TRUE(fits_options(kept, options, WithDifferences::kNo));
  // Of a vocabulary that no number of tokens is.
  for (const Json& size : {Json(1e300), Json(-1), Json("2"), Json(true)}) {
    next["vocab_size"] = size;
    EXPECT_FALSE(fits_options(kept, options, WithDifferences::kNo)) << size;
  }
}

}  // namespace
}  // namespace saker::cli

// SPDX-License-Identifier: Apache-2.0
// Scores of a DFlash 2 draft's candidates, by hand.
#include "saker/models/dflash.h"

#include "tests/nn/random_weights.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

namespace saker::models {
namespace {

using ::testing::ElementsAre;

constexpr int kTokens = 24;

// Rows of a codebook of rank 2; those of all other tokens are 0.
using Rows = std::map<std::size_t, std::array<float, 2>>;

Tensor codebook(const Rows& rows) {
  std::vector<float> values(std::size_t{kTokens} * 2, 0.0F);
  for (const auto& [token, row] : rows) {
    std::ranges::copy(row, values.begin() + static_cast<std::ptrdiff_t>(2 * token));
  }
  return nn::float_tensor({kTokens, 2}, values);
}

CandidateSelector make_selector() {
  nn::TensorMap tensors;
  tensors["hidden_projection.weight"] = nn::float_tensor({2, 2}, {0, 1, 1, 0});
  tensors["predecessor_codebook.weight"] =
      codebook({{7, {1, 0}}, {9, {-1, 0}}, {20, {0, 1}}, {22, {0, 1}}});
  tensors["successor_codebook.weight"] =
      codebook({{5, {100, 100}}, {20, {1, 0}}, {21, {0, 1}}, {23, {0, 1}}});
  DflashConfig config;
  config.decoder.hidden = 2;
  config.decoder.vocab_size = kTokens;
  config.second = Dflash2Options{.selector_rank = 2, .selector_choices = 3};
  return {nn::Weights(tensors, {}), config};
}

// Logits of 0 but for these.
std::vector<float> logits_of(const std::map<std::size_t, float>& given) {
  std::vector<float> logits(kTokens, 0.0F);
  for (const auto& [token, logit] : given) {
    logits[token] = logit;
  }
  return logits;
}

TEST(CandidateSelector, ProjectsRows) {
  const std::vector<float> hidden = {1, 2, 3, 4};
  mx::array rows =
      mx::contiguous(make_selector().project(mx::array(hidden.data(), {2, 2}, mx::float32)));
  mx::eval(rows);
  EXPECT_THAT(
      std::vector<float>(rows.data<float>(), rows.data<float>() + 4), ElementsAre(2, 1, 4, 3)
  );
}

TEST(CandidateSelector, ScoresAreLogitsAndHowWellTokensFollow) {
  std::vector<float> row = logits_of({{20, 3.0F}, {21, 3.25F}, {22, 3.5F}, {5, 2.0F}});
  make_selector().rescore(row, std::array{2.0F, 1.0F}, 7);
  // 20: 3 + 1 * 2 * 1. A 5 would follow best, but is no candidate.
  std::vector<float> expected(kTokens, -std::numeric_limits<float>::infinity());
  expected[20] = 5.0F;
  expected[21] = 3.25F;
  expected[22] = 3.5F;
  EXPECT_EQ(row, expected);
}

// Two positions of two sequences. By logits alone all would be 22.
TEST(CandidateSelector, EachChoiceLeadsToTheNext) {
  const CandidateSelector selector = make_selector();
  const auto path = [&](std::int32_t token, const std::map<std::size_t, float>& second) {
    std::vector<std::int32_t> tokens;
    for (std::vector<float> row :
         {logits_of({{20, 3.0F}, {21, 3.25F}, {22, 3.5F}}), logits_of(second)}) {
      selector.rescore(row, std::array{2.0F, 4.0F}, token);
      token = static_cast<std::int32_t>(std::ranges::max_element(row) - row.begin());
      tokens.push_back(token);
    }
    return tokens;
  };
  EXPECT_THAT(path(7, {{20, 3.0F}, {21, 3.25F}, {22, 3.5F}}), ElementsAre(20, 21));
  EXPECT_THAT(path(9, {{20, 3.0F}, {22, 3.5F}, {23, 2.5F}}), ElementsAre(22, 23));
}

}  // namespace
}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/repeats.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

namespace saker::sample {
namespace {

using Tokens = std::vector<std::int32_t>;

SamplingOptions dry() {
  SamplingOptions options;
  options.dry_multiplier = 1.0;
  options.dry_base = 1.5;
  return options;
}

// What each of eight tokens loses.
std::vector<float> losses(
    const SamplingOptions& options, const Tokens& context, const Tokens& breakers = {}
) {
  std::vector<float> logits(8, 0.0F);
  penalise_repeats(options, breakers, context, logits);
  for (float& x : logits) {
    x = 0.0F - x;
  }
  return logits;
}

TEST(Dry, PenalisesWhatWouldProlongARepetition) {
  EXPECT_EQ(losses(dry(), {0, 1, 2, 0, 1}), (std::vector<float>{0, 0, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(losses(dry(), {5, 0, 1, 2, 5, 0, 1}), (std::vector<float>{0, 0, 1.5F, 0, 0, 0, 0, 0}));
  // Both continuations of the last two tokens; the longer repetition counts.
  EXPECT_EQ(
      losses(dry(), {0, 1, 3, 6, 0, 1, 2, 6, 0, 1}), (std::vector<float>{0, 0, 1.5F, 1, 0, 0, 0, 0})
  );
}

TEST(Dry, ShortRepetitionsAreAllowed) {
  EXPECT_EQ(losses(dry(), {0, 1, 2, 7, 1}), std::vector<float>(8, 0.0F));
  SamplingOptions options = dry();
  options.dry_allowed_length = 4;
  EXPECT_EQ(losses(options, {5, 0, 1, 2, 5, 0, 1}), std::vector<float>(8, 0.0F));
  options.dry_allowed_length = 0;
  EXPECT_EQ(losses(options, {1, 4, 1}), (std::vector<float>{0, 0, 0, 0, 1.5F, 0, 0, 0}));
  EXPECT_EQ(losses(options, {1}), std::vector<float>(8, 0.0F));
  EXPECT_EQ(losses(options, {}), std::vector<float>(8, 0.0F));
}

TEST(Dry, RepetitionsEndAtBreakers) {
  // 3 ends what is repeated after it, and is never penalised.
  EXPECT_EQ(losses(dry(), {0, 3, 1, 2, 0, 3, 1}, {3}), std::vector<float>(8, 0.0F));
  EXPECT_EQ(losses(dry(), {0, 1, 3, 4, 0, 1}, {3}), std::vector<float>(8, 0.0F));
  EXPECT_EQ(
      losses(dry(), {3, 0, 1, 2, 3, 0, 1}, {3}), (std::vector<float>{0, 0, 1, 0, 0, 0, 0, 0})
  );
}

TEST(Dry, LooksAtTheLastTokensOnly) {
  SamplingOptions options = dry();
  options.dry_context_size = 4;
  EXPECT_EQ(losses(options, {0, 1, 2, 0, 1}), std::vector<float>(8, 0.0F));
  options.dry_context_size = 5;
  EXPECT_EQ(losses(options, {0, 1, 2, 0, 1}), (std::vector<float>{0, 0, 1, 0, 0, 0, 0, 0}));
}

TEST(Dry, PenaltiesStayFinite) {
  SamplingOptions options = dry();
  options.dry_multiplier = 100.0;
  options.dry_base = 100.0;
  const Tokens context(5000, 6);
  const std::vector<float> lost = losses(options, context);
  EXPECT_GT(lost[6], 1e30F);
  EXPECT_TRUE(std::isfinite(lost[6]));
  EXPECT_EQ(losses(dry(), {0, 1, 900, 0, 1}), std::vector<float>(8, 0.0F));
}

// The definition, place by place.
std::map<std::int32_t, std::size_t> longest_repeats(const Tokens& context, std::int32_t breaker) {
  std::map<std::int32_t, std::size_t> longest;
  for (std::size_t next = 1; next < context.size(); ++next) {
    std::size_t length = 0;
    while (length < next && context[next - 1 - length] == context[context.size() - 1 - length] &&
           context[next - 1 - length] != breaker) {
      ++length;
    }
    if (length >= 2 && context[next] != breaker) {
      longest[context[next]] = std::max(longest[context[next]], length);
    }
  }
  return longest;
}

RC_GTEST_PROP(Dry, IsTheLongestRepetition, ()) {
  const auto context = *rc::gen::container<Tokens>(rc::gen::inRange(0, 3));
  const std::vector<float> lost = losses(dry(), context, {2});
  std::vector<float> expected(8, 0.0F);
  for (const auto& [id, length] : longest_repeats(context, 2)) {
    expected[static_cast<std::size_t>(id)] =
        static_cast<float>(std::pow(1.5, static_cast<double>(length) - 2.0));
  }
  for (std::size_t i = 0; i < lost.size(); ++i) {
    RC_ASSERT(std::abs(lost[i] - expected[i]) <= 1e-5F * expected[i]);
  }
}

}  // namespace
}  // namespace saker::sample

// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/token_mask.h"

#include "saker/base/error.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <set>
#include <utility>

namespace saker::sample {
namespace {

class Allows final : public TokenMask {
 public:
  explicit Allows(std::set<std::size_t> tokens, bool may_end = false)
      : tokens_(std::move(tokens)), may_end_(may_end) {}

  bool fill(std::span<std::uint32_t> bits) override {
    for (const std::size_t token : tokens_) {
      bits[token / 32] |= std::uint32_t{1} << (token % 32);
    }
    return may_end_;
  }

  bool accept(std::int32_t /*token*/) override { return true; }

 private:
  std::set<std::size_t> tokens_;
  bool may_end_;
};

TEST(TokenMask, LowersAllOthers) {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  for (const std::size_t size : {1, 31, 32, 33, 64, 97}) {
    const std::set<std::size_t> tokens{0, size / 2, size - 1};
    Allows mask(tokens);
    std::vector<float> logits(size, 1.5F);
    FilledMask filled;
    fill_mask(mask, size, filled);
    EXPECT_TRUE(apply_mask(filled, logits));
    for (std::size_t i = 0; i < size; ++i) {
      EXPECT_EQ(logits[i], tokens.contains(i) ? 1.5F : kNever) << i << " of " << size;
    }
  }
}

TEST(TokenMask, ATokenBeyondTheVocabularyIsNone) {
  std::vector<float> logits(33, 1.0F);
  FilledMask filled;
  Allows ends({40}, true);
  fill_mask(ends, logits.size(), filled);
  EXPECT_FALSE(apply_mask(filled, logits));
  EXPECT_EQ(logits, std::vector<float>(33, 1.0F));
  Allows stuck({40});
  testing::expect_error(ErrorCode::kInvalidArgument, {"allows no token"}, [&] {
    fill_mask(stuck, logits.size(), filled);
    apply_mask(filled, logits);
  });
}

}  // namespace
}  // namespace saker::sample

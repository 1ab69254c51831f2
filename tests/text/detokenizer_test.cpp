// SPDX-License-Identifier: Apache-2.0
#include "saker/text/detokenizer.h"

#include "saker/base/utf8.h"

#include "tests/support/expect_error.h"
#include "tests/text/golden_tokenizers.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace saker::text {
namespace {

using Ids = std::vector<std::int32_t>;

std::vector<std::string> pieces(const Tokenizer& tokenizer, const Ids& ids, DecodeOptions options) {
  Detokenizer detokenizer(tokenizer, options);
  std::vector<std::string> result;
  for (const auto id : ids) {
    result.push_back(detokenizer.add(id));
  }
  result.push_back(detokenizer.finish());
  return result;
}

std::string join(const std::vector<std::string>& parts) {
  std::string all;
  for (const auto& part : parts) {
    all += part;
  }
  return all;
}

Ids known_ids(const Tokenizer& tokenizer) {
  Ids ids;
  for (std::int32_t id = 0; id < tokenizer.vocab_size() + 10; ++id) {
    if (tokenizer.has_token(id)) {
      ids.push_back(id);
    }
  }
  return ids;
}

class DetokenizerTest : public ::testing::TestWithParam<const char*> {
 protected:
  GoldenTokenizer golden_{GetParam()};
};

TEST_P(DetokenizerTest, PiecesJoinToTheReference) {
  for (const auto& item : golden_.golden.at("decoded")) {
    const auto ids = item.at("ids").get<Ids>();
    EXPECT_EQ(join(pieces(*golden_.tokenizer, ids, {})), item.at("text").get<std::string>());
    const DecodeOptions skip{.skip_special_tokens = true};
    EXPECT_EQ(
        join(pieces(*golden_.tokenizer, ids, skip)), item.at("plain_text").get<std::string>()
    );
  }
}

TEST_P(DetokenizerTest, PiecesOfAnyIdsJoinToDecodeAndAreUtf8) {
  const auto& tokenizer = *golden_.tokenizer;
  const auto known = known_ids(tokenizer);
  EXPECT_TRUE(rc::check([&] {
    const auto ids = *rc::gen::container<Ids>(rc::gen::elementOf(known));
    const DecodeOptions options{.skip_special_tokens = *rc::gen::arbitrary<bool>()};
    const auto parts = pieces(tokenizer, ids, options);
    RC_ASSERT(join(parts) == tokenizer.decode(ids, options));
    for (const auto& part : parts) {
      RC_ASSERT(!find_invalid_utf8(part).has_value());
    }
  }));
}

TEST_P(DetokenizerTest, WhatIsOutIsNeverTakenBack) {
  for (const auto& item : golden_.golden.at("decoded")) {
    const auto ids = item.at("ids").get<Ids>();
    const auto whole = item.at("text").get<std::string>();
    Detokenizer detokenizer(*golden_.tokenizer);
    std::string out;
    for (const auto id : ids) {
      out += detokenizer.add(id);
      EXPECT_EQ(whole.substr(0, out.size()), out);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    DetokenizerTest,
    ::testing::ValuesIn(kGoldenNames),
    [](const auto& test) { return std::string(test.param); }
);

TEST(Detokenizer, HoldsBackAnIncompleteCharacterOnly) {
  const auto tokenizer = GoldenTokenizer("byte_level_bpe").tokenizer;
  const auto byte_id = [&](const char* piece) { return *tokenizer->token_id(piece); };
  // U+1F600 is F0 9F 98 80; the byte-level alphabet writes those bytes as these characters.
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.add(byte_id("t")), "t");
  EXPECT_EQ(detokenizer.add(byte_id("ð")), "");
  EXPECT_EQ(detokenizer.add(byte_id("Ł")), "");
  EXPECT_EQ(detokenizer.add(byte_id("ĺ")), "");
  EXPECT_EQ(detokenizer.add(byte_id("Ģ")), "\U0001F600");
  EXPECT_EQ(detokenizer.add(byte_id("ð")), "");
  EXPECT_EQ(detokenizer.add(byte_id("t")), "\ufffdt");
  EXPECT_EQ(detokenizer.add(byte_id("Ã")), "");
  EXPECT_EQ(detokenizer.finish(), "\ufffd");
}

TEST(Detokenizer, HoldsBackARunOfByteTokensOnly) {
  const auto tokenizer = GoldenTokenizer("llama_bpe").tokenizer;
  const auto id = [&](const char* piece) { return *tokenizer->token_id(piece); };
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.add(id("▁the")), "the");  // The first space of the text is cut.
  EXPECT_EQ(detokenizer.add(id("▁cat")), " cat");
  EXPECT_EQ(detokenizer.add(id("<0xC3>")), "");
  EXPECT_EQ(detokenizer.add(id("<0xA9>")), "");  // A later byte could make the run invalid.
  EXPECT_EQ(detokenizer.add(id("s")), "és");
  EXPECT_EQ(detokenizer.add(id("<0x41>")), "");
  EXPECT_EQ(detokenizer.add(id("<0xFF>")), "");
  EXPECT_EQ(detokenizer.finish(), "\ufffd\ufffd");
}

TEST(Detokenizer, PassesOverIdsWithoutToken) {
  const auto tokenizer = GoldenTokenizer("words").tokenizer;
  EXPECT_EQ(join(pieces(*tokenizer, {1, 7, 100'000, 2}, {})), "the cat");
  testing::expect_error(ErrorCode::kInvalidArgument, {"-1"}, [&] {
    Detokenizer(*tokenizer).add(-1);
  });
}

TEST(Detokenizer, OutlivesItsTokenizer) {
  auto tokenizer = GoldenTokenizer("words").tokenizer;
  Detokenizer detokenizer(*tokenizer);
  tokenizer.reset();
  EXPECT_EQ(detokenizer.add(1), "the");
}

TEST(Detokenizer, LongSequencesStayLinear) {
  // A window that grew with the text would take minutes here.
  const auto tokenizer = GoldenTokenizer("byte_level_bpe").tokenizer;
  const auto incomplete = *tokenizer->token_id("ð");
  Detokenizer detokenizer(*tokenizer);
  std::size_t size = 0;
  for (int i = 0; i < 300'000; ++i) {
    size += detokenizer.add(incomplete).size();
  }
  EXPECT_EQ(size + detokenizer.finish().size(), 300'000U * 3);
}

}  // namespace
}  // namespace saker::text

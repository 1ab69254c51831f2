// SPDX-License-Identifier: Apache-2.0
#include "saker/text/tokenizer.h"

#include "saker/text/detokenizer.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include "tests/text/golden_tokenizers.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace saker::text {
namespace {

using Ids = std::vector<std::int32_t>;
using testing::expect_error;

class GoldenTest : public ::testing::TestWithParam<const char*> {
 protected:
  GoldenTokenizer golden_{GetParam()};
};

TEST_P(GoldenTest, EncodesAsTheReference) {
  for (const auto& item : golden_.golden.at("cases")) {
    const auto text = item.at("text").get<std::string>();
    EXPECT_EQ(golden_.tokenizer->encode(text), item.at("ids").get<Ids>()) << text;
    EXPECT_EQ(
        golden_.tokenizer->encode(text, {.add_special_tokens = false}),
        item.at("plain_ids").get<Ids>()
    ) << text;
  }
}

TEST_P(GoldenTest, DecodesAsTheReference) {
  for (const auto& item : golden_.golden.at("decoded")) {
    const auto ids = item.at("ids").get<Ids>();
    EXPECT_EQ(golden_.tokenizer->decode(ids), item.at("text").get<std::string>());
    EXPECT_EQ(
        golden_.tokenizer->decode(ids, {.skip_special_tokens = true}),
        item.at("plain_text").get<std::string>()
    );
  }
}

TEST_P(GoldenTest, KnowsItsVocabulary) {
  EXPECT_EQ(golden_.tokenizer->vocab_size(), golden_.golden.at("vocab_size").get<int>());
  for (const auto& item : golden_.golden.at("decoded")) {
    for (const auto id : item.at("ids").get<Ids>()) {
      EXPECT_EQ(golden_.tokenizer->token_id(golden_.tokenizer->token_piece(id)), id);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTest, ::testing::ValuesIn(kGoldenNames), [](const auto& test) {
  return std::string(test.param);
});

TEST(Tokenizer, TellsSpecialTokens) {
  const auto tokenizer = GoldenTokenizer("byte_level_bpe").tokenizer;
  EXPECT_TRUE(tokenizer->is_special(*tokenizer->token_id("<s>")));
  EXPECT_FALSE(tokenizer->is_special(*tokenizer->token_id("<|x|>")));  // Added, not special.
  EXPECT_FALSE(tokenizer->is_special(*tokenizer->token_id("t")));
  EXPECT_FALSE(tokenizer->is_special(-1));
  EXPECT_FALSE(tokenizer->is_special(1 << 30));
  EXPECT_EQ(tokenizer->token_id("no such token"), std::nullopt);
}

TEST(Tokenizer, KeepsNulBytes) {
  const auto tokenizer = GoldenTokenizer("byte_level_bpe").tokenizer;
  const std::string text("a\0b\0", 4);
  EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, {.add_special_tokens = false})), text);
}

TEST(Tokenizer, NamesTheInvalidByte) {
  const auto tokenizer = GoldenTokenizer("byte_level_bpe").tokenizer;
  for (const auto* text :
       {"ab\xff", "ab\xc3", "ab\xed\xa0\x80", "ab\xf4\x90\x80\x80", "ab\xc0\xaf"}) {
    expect_error(ErrorCode::kInvalidArgument, {"2"}, [&] { tokenizer->encode(text); });
  }
}

TEST(Tokenizer, NamesAnIdWithoutToken) {
  const auto tokenizer = GoldenTokenizer("words").tokenizer;  // Ids 0 1 2 4 9.
  for (const std::int32_t id : {-1, 3, 10, 2147483647}) {
    const auto name = std::to_string(id);
    expect_error(ErrorCode::kInvalidArgument, {name, "5"}, [&] { tokenizer->decode(Ids{1, id}); });
    expect_error(ErrorCode::kInvalidArgument, {name}, [&] { tokenizer->token_piece(id); });
    EXPECT_FALSE(tokenizer->has_token(id));
  }
  EXPECT_EQ(tokenizer->decode(Ids{1, 9}), "the sat");
}

TEST(Tokenizer, LoadsFromAFolderWithOnlyItsFile) {
  const testing::TemporaryDir dir;
  expect_error(ErrorCode::kNotFound, {"tokenizer.json"}, [&] { Tokenizer::load(dir.path()); });
  dir.write("tokenizer.json", GoldenTokenizer("words").golden.at("tokenizer").dump());
  EXPECT_EQ(Tokenizer::load(dir.path())->encode("the cat"), (Ids{1, 2}));
}

TEST(Tokenizer, RefusesBrokenFiles) {
  const std::string good = GoldenTokenizer("words").golden.at("tokenizer").dump();
  const std::vector<std::string> broken{
      "",
      "{}",
      "null",
      "[1, 2",
      good.substr(0, good.size() / 2),
      std::string(100'000, '['),
      R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})",
      R"({"model": {"type": "Unigram", "vocab": [], "unk_id": 3}})",
      R"({"model": {"type": "Nothing"}})",
      "\xff\xfe",
  };
  for (const auto& json : broken) {
    expect_error(ErrorCode::kCorruptData, {"here"}, [&] { Tokenizer::parse(json, "here"); });
  }
}

// They are left from training.
TEST(Tokenizer, NeitherTruncatesNorPads) {
  const GoldenTokenizer golden("words");
  auto json = golden.golden.at("tokenizer");
  json["truncation"] = {
      {"direction", "Right"}, {"max_length", 1}, {"strategy", "LongestFirst"}, {"stride", 0}
  };
  json["padding"] = {
      {"strategy", {{"Fixed", 1'000'000'000'000}}},
      {"direction", "Right"},
      {"pad_to_multiple_of", nullptr},
      {"pad_id", 0},
      {"pad_type_id", 0},
      {"pad_token", "<unk>"}
  };
  const std::string text = "the weather is there";
  EXPECT_EQ(Tokenizer::parse(json.dump(), "it")->encode(text), golden.tokenizer->encode(text));
}

// Four steps of a thousand characters make 10^12 of one.
Json growth(const char* key, const char* type) {
  Json steps = Json::array();
  for (int i = 0; i < 4; ++i) {
    steps.push_back({
        {"type", type},
        {"pattern", {{"String", "a"}}},
        {"content", std::string(1000, 'a')},
    });
  }
  return {{"type", "Sequence"}, {key, std::move(steps)}};
}

// A byte-pair vocabulary a little larger than the largest published ones, indented as they are: 325 000 tokens
// and 585 000 merges.
std::string largest_vocabulary() {
  constexpr int kLetters = 256;
  constexpr int kPairs = kLetters * kLetters;
  constexpr int kTriples = 260'000;
  const auto letter = [](int index) {
    const int code = 0x4E00 + index % kLetters;  // Three bytes of UTF-8.
    return std::string{
        static_cast<char>(0xE0 | code >> 12),
        static_cast<char>(0x80 | (code >> 6 & 0x3F)),
        static_cast<char>(0x80 | (code & 0x3F))
    };
  };
  std::string vocabulary;
  std::string merges;
  int id = 0;
  const auto add_token = [&](const std::string& token) {
    vocabulary += fmt::format("{}\"{}\":{}", id == 0 ? "" : ",", token, id);
    ++id;
  };
  const auto add_merge = [&](const std::string& left, const std::string& right) {
    const char* const line = "\n          ";
    merges += fmt::format(
        "{}[{}\"{}\",{}\"{}\"{}]", merges.empty() ? "" : ",", line, left, line, right, line
    );
  };
  for (int i = 0; i < kLetters; ++i) {
    add_token(letter(i));
  }
  const auto pair = [&](int index) { return letter(index / kLetters) + letter(index); };
  for (int i = 0; i < kPairs; ++i) {
    add_token(pair(i));
    add_merge(letter(i / kLetters), letter(i));
  }
  for (int i = 0; i < kTriples; ++i) {
    const int first = i % kPairs;
    const std::string last = letter(i / kPairs);
    add_token(pair(first) + last);
    add_merge(pair(first), last);
    add_merge(letter(first / kLetters), letter(first) + last);
  }
  return fmt::format(
      R"({{"version":"1.0","added_tokens":[],"normalizer":null,"pre_tokenizer":null,)"
      R"("post_processor":null,"decoder":null,"model":{{"type":"BPE","byte_fallback":false,)"
      R"("unk_token":null,"vocab":{{{}}},"merges":[{}]}}}})",
      vocabulary,
      merges
  );
}

TEST(Tokenizer, TheLargestVocabulariesFit) {
  const auto tokenizer = Tokenizer::parse(largest_vocabulary(), "it");
  EXPECT_EQ(tokenizer->encode("\u4E00\u4E01"), (Ids{257}));
}

TEST(Tokenizer, BoundsWhatItsFileMakesOfAText) {
  auto json = GoldenTokenizer("byte_level_bpe").golden.at("tokenizer");
  json["normalizer"] = growth("normalizers", "Replace");
  const auto tokenizer = Tokenizer::parse(json.dump(), "it");
  expect_error(ErrorCode::kInvalidArgument, {"256 MB"}, [&] { tokenizer->encode("a"); });
  EXPECT_FALSE(tokenizer->encode("b").empty());
}

TEST(Tokenizer, BoundsWhatItsFileMakesOfTokens) {
  auto json = GoldenTokenizer("words").golden.at("tokenizer");
  json["decoder"] = growth("decoders", "Replace");
  const auto tokenizer = Tokenizer::parse(json.dump(), "it");
  const Ids grows{*tokenizer->token_id("cat")};
  const Ids stays{*tokenizer->token_id("the")};
  expect_error(ErrorCode::kInvalidArgument, {"256 MB"}, [&] { tokenizer->decode(grows); });
  EXPECT_EQ(tokenizer->decode(stays), "the");
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.add(stays.front()), "the");
  expect_error(ErrorCode::kCorruptData, {"256 MB"}, [&] { detokenizer.add(grows.front()); });
  expect_error(ErrorCode::kCorruptData, {"earlier"}, [&] { detokenizer.add(stays.front()); });
}

// The expression reads the rest of the text at each place, and goes back nowhere.
TEST(Tokenizer, LeavesASearchWithoutEndAlone) {
  auto json = GoldenTokenizer("byte_level_bpe").golden.at("tokenizer");
  json["normalizer"] = nullptr;
  json["pre_tokenizer"] = {
      {"type", "Split"},
      {"pattern", {{"Regex", "[^x]++y"}}},
      {"behavior", "Isolated"},
      {"invert", false}
  };
  const auto tokenizer = Tokenizer::parse(json.dump(), "it");
  EXPECT_FALSE(tokenizer->encode("aaay").empty());
  const std::string text = std::string(100'000, 'a') + "xy";
  expect_error(ErrorCode::kInvalidArgument, {" s"}, [&] { tokenizer->encode(text); });
  expect_error(ErrorCode::kInvalidArgument, {"earlier"}, [&] { tokenizer->encode("aaay"); });
}

TEST(Tokenizer, BoundsPieces) {
  auto json = GoldenTokenizer("unigram").golden.at("tokenizer");
  json["model"]["vocab"].push_back(Json::array({std::string(200'000, 'a'), -1.0}));
  expect_error(ErrorCode::kCorruptData, {"200000 bytes", "4096"}, [&] {
    Tokenizer::parse(json.dump(), "it");
  });
}

TEST(Tokenizer, LongTextsHaveTheIdsOfTheirParts) {
  const auto tokenizer = GoldenTokenizer("byte_level_bpe").tokenizer;
  const std::string part = "the cat sat there, isn't it? ";
  std::string text;
  while (text.size() <= 2 * kWholeTextBytes) {
    text += part;
  }
  const Ids ids = tokenizer->encode(text, {.add_special_tokens = false});
  const std::size_t parts = text.size() / part.size();
  const std::size_t few = 100;
  const Ids beginning =
      tokenizer->encode(text.substr(0, few * part.size()), {.add_special_tokens = false});
  const std::size_t step =
      tokenizer->encode(text.substr(0, 101 * part.size()), {.add_special_tokens = false}).size() -
      beginning.size();
  EXPECT_EQ(ids.size(), beginning.size() + (parts - few) * step);
  EXPECT_TRUE(std::equal(beginning.begin(), beginning.end() - 4, ids.begin()));
  EXPECT_EQ(tokenizer->decode(ids), text);
  // Each of up to eight threads has read a piece or two before it sees that there are enough.
  std::string longer;
  constexpr std::size_t kTimes = 16;
  for (std::size_t i = 0; i < kTimes; ++i) {
    longer += text;
  }
  const Ids some = tokenizer->encode(longer, {.add_special_tokens = false, .most_tokens = 10});
  EXPECT_GT(some.size(), 10U);
  EXPECT_LT(some.size(), kTimes * ids.size() / 2);
}

TEST(Tokenizer, ServesManyThreads) {
  const GoldenTokenizer golden("byte_level_bpe");
  const auto expected = golden.tokenizer->encode("the weather is there");
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        EXPECT_EQ(golden.tokenizer->encode("the weather is there"), expected);
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace saker::text

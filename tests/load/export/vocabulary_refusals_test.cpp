// SPDX-License-Identifier: Apache-2.0
// Tokenizers that GGUF files cannot describe, and broken ones.
#include "saker/base/error.h"
#include "saker/load/export/tokenizer_merges.h"
#include "saker/load/export/vocabulary_metadata.h"

#include "tests/load/export/small_tokenizers.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {
namespace {

using saker::testing::expect_error;
using Change = std::function<void(Json&)>;
using Words = std::vector<std::string_view>;

void expect_bytes_refused(ErrorCode code, const Words& words, const Change& change, int rows = 10) {
  Json tokenizer = byte_tokenizer();
  change(tokenizer);
  expect_error(code, words, [&] { written(tokenizer, rows); });
}

void expect_pieces_refused(const Words& words, const Change& change) {
  Json tokenizer = piece_tokenizer();
  change(tokenizer);
  expect_error(ErrorCode::kUnsupported, words, [&] { written_pieces(tokenizer); });
}

TEST(VocabularyRefusalsTest, RefusesOtherKinds) {
  expect_bytes_refused(ErrorCode::kUnsupported, {"WordPiece", "BPE"}, [](Json& json) {
    json["model"] = {
        {"type", "WordPiece"},
        {"unk_token", "a"},
        {"continuing_subword_prefix", "##"},
        {"max_input_chars_per_word", 100},
        {"vocab", {{"a", 0}}},
    };
  });
  expect_bytes_refused(ErrorCode::kUnsupported, {"Unigram", "BPE"}, [](Json& json) {
    json["model"] = {
        {"type", "Unigram"}, {"unk_id", 0}, {"vocab", Json::array({Json::array({"a", 0.0})})}
    };
  });
  expect_bytes_refused(ErrorCode::kUnsupported, {"end_of_word_suffix"}, [](Json& json) {
    json["model"]["end_of_word_suffix"] = "</w>";
  });
}

TEST(VocabularyRefusalsTest, RefusesOtherSteps) {
  expect_bytes_refused(ErrorCode::kUnsupported, {"normalizer", "Lowercase"}, [](Json& json) {
    json["normalizer"] = {{"type", "Lowercase"}};
  });
  expect_pieces_refused({"normalizer", "NFKC"}, [](Json& json) {
    json["normalizer"]["normalizers"].push_back({{"type", "NFKC"}});
  });
  expect_pieces_refused({"normalizer", "_"}, [](Json& json) {
    json["normalizer"] = {{"type", "Prepend"}, {"prepend", "_"}};
  });
  expect_pieces_refused({"spaces stay spaces"}, [](Json& json) { json["normalizer"] = nullptr; });
  expect_pieces_refused({"pre_tokenizer", "Metaspace"}, [](Json& json) {
    json["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "\xE2\x96\x81"}};
  });
  expect_pieces_refused({"pre_tokenizer", "Digits"}, [](Json& json) {
    json["pre_tokenizer"] = {{"type", "Digits"}, {"individual_digits", true}};
  });
  expect_pieces_refused({"ignore_merges"}, [](Json& json) {
    json["model"]["ignore_merges"] = true;
  });
}

TEST(VocabularyRefusalsTest, RefusesPiecesWithoutScores) {
  expect_pieces_refused({"<0x41>"}, [](Json& json) { json["model"]["vocab"].erase("<0x41>"); });
  expect_pieces_refused({"'h' and 'i'", "no merge"}, [](Json& json) {
    json["model"]["merges"].erase(3);
  });
  // "▁hi" is made first, and again after others.
  expect_pieces_refused({"make pieces in turn"}, [](Json& json) {
    Json& merges = json["model"]["merges"];
    std::swap(merges[1], merges[3]);
  });
}

TEST(VocabularyRefusalsTest, BoundsTheSearchForWays) {
  std::vector<std::string> texts;
  for (int i = 0; i < 9000; ++i) {
    texts.push_back(fmt::format("{:0>512}", i));
  }
  const std::vector<std::string_view> pieces(texts.begin(), texts.end());
  expect_error(ErrorCode::kUnsupported, {"too many long pieces"}, [&] {
    piece_scores({}, pieces);
  });
}

TEST(VocabularyRefusalsTest, RefusesOtherTokensAroundTexts) {
  const auto framed = [](const Json& single) {
    Json tokenizer = piece_tokenizer();
    Json& processor = tokenizer["post_processor"];
    processor["single"] = single;
    processor["special_tokens"]["</s>"] = {{"id", "</s>"}, {"ids", {kEos}}, {"tokens", {"</s>"}}};
    return tokenizer;
  };
  const auto token = [](const char* text) {
    return Json{{"SpecialToken", {{"id", text}, {"type_id", 0}}}};
  };
  const Json text = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  const Json both = framed({token("<s>"), text, token("</s>")});
  EXPECT_NO_THROW(written_pieces(both));
  expect_error(ErrorCode::kUnsupported, {"'<s> </s>' before"}, [&] {
    written_pieces(framed({token("<s>"), token("</s>"), text}));
  });
  const Files files = {
      {"tokenizer.json", both}, {"tokenizer_config.json", {{"bos_token", "</s>"}}}
  };
  expect_error(ErrorCode::kUnsupported, {"'<s>' before", "'</s>'"}, [&] {
    written(files, kSpaceH + 1);
  });
}

TEST(VocabularyRefusalsTest, RefusesBrokenVocabularies) {
  using enum ErrorCode;
  const auto vocabulary = [](Json& json) -> Json& { return json["model"]["vocab"]; };
  expect_bytes_refused(kCorruptData, {"token 0 is 'a' and 'c'"}, [&](Json& json) {
    vocabulary(json)["c"] = 0;
  });
  expect_bytes_refused(kCorruptData, {}, [&](Json& json) { vocabulary(json)["c"] = -1; });
  expect_bytes_refused(kCorruptData, {}, [&](Json& json) { vocabulary(json)["c"] = 1.5; });
  expect_bytes_refused(kCorruptData, {}, [&](Json& json) { vocabulary(json)["c"] = "6"; });
  expect_bytes_refused(kCorruptData, {}, [&](Json& json) { vocabulary(json) = 7; });
  expect_bytes_refused(kCorruptData, {}, [](Json& json) { json.erase("model"); });
  expect_bytes_refused(kCorruptData, {}, [](Json& json) { json = Json::array(); });
  expect_bytes_refused(kUnsupported, {"vocab_size is 2000000", "1048576"}, [](Json&) {}, 2'000'000);
}

TEST(VocabularyRefusalsTest, RefusesTokensOfOneText) {
  // With spaces for its signs, the added token has the text of another.
  Json tokenizer = piece_tokenizer();
  const std::string space = "\xE2\x96\x81";
  tokenizer["added_tokens"].push_back(added(kSpaceH + 1, "x y", false));
  tokenizer["added_tokens"].push_back(
      added(kSpaceH + 2, "x" + space + "y", false, {{"normalized", true}})
  );
  expect_error(ErrorCode::kUnsupported, {"both 'x y'"}, [&] { written(tokenizer, kSpaceH + 3); });
  // An unused token gets another name instead.
  Json padded = byte_tokenizer();
  padded["added_tokens"][1] = added(9, "[PAD6]", false);
  EXPECT_NO_THROW(written(padded));
}

TEST(VocabularyRefusalsTest, RefusesMergesThatAreNoPairs) {
  for (const Json& merge : std::vector<Json>{
           "ab",
           "a b c",
           7,
           nullptr,
           Json::array({"a"}),
           Json::array({"a", "b", "c"}),
           Json::array({"a", 1})
       }) {
    expect_error(ErrorCode::kCorruptData, {"merge 1"}, [&] {
      read_merges({{"merges", Json::array({"a b", merge})}});
    });
  }
  for (const Json& model :
       {Json::object(), Json{{"merges", 7}}, Json{{"merges", Json::object()}}}) {
    expect_error(ErrorCode::kCorruptData, {"merges"}, [&] { read_merges(model); });
  }
  expect_bytes_refused(ErrorCode::kUnsupported, {"has a space"}, [](Json& json) {
    json["model"]["vocab"]["a "] = 6;
    json["model"]["vocab"][" "] = 7;
    json["model"]["merges"] = Json::array({Json::array({"a", " "})});
  });
}

}  // namespace
}  // namespace saker::load::gguf

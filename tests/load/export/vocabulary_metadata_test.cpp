// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/vocabulary_metadata.h"

#include "saker/base/error.h"
#include "saker/load/export/split_patterns.h"
#include "saker/load/gguf/gguf_pre_tokenizer.h"
#include "saker/load/gguf/gguf_tokenizer.h"
#include "saker/text/tokenizer.h"

#include "tests/load/export/small_tokenizers.h"
#include "tests/load/export/written_header.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load::gguf {
namespace {

using saker::testing::expect_error;
using Ids = std::vector<std::int32_t>;
using Types = std::vector<std::int32_t>;

std::shared_ptr<const text::Tokenizer> read_back(const Metadata& pairs) {
  Metadata all = {{"general.architecture", std::string("llama")}};
  all.insert(all.end(), pairs.begin(), pairs.end());
  const Header header = header_of(builder_of(all));
  const auto vocabulary = read_vocabulary(header);
  return text::Tokenizer::parse(
      tokenizer_files(header, *vocabulary).at("tokenizer.json"), "tokenizer.json"
  );
}

void expect_same_ids(
    const Json& tokenizer, const Metadata& pairs, const std::vector<std::string>& samples
) {
  const auto ours = text::Tokenizer::parse(tokenizer.dump(), "tokenizer.json");
  const auto read = read_back(pairs);
  for (const std::string& sample : samples) {
    EXPECT_EQ(read->encode(sample), ours->encode(sample)) << sample;
  }
}

TEST(VocabularyMetadataTest, WritesBytes) {
  const Metadata pairs = written(byte_tokenizer(), 11).pairs;
  EXPECT_EQ(value_of<std::string>(pairs, "tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ(value_of<std::string>(pairs, "tokenizer.ggml.pre"), "gpt-2");
  const std::vector<std::string> tokens = {
      "a", "b", "ab", "Ġ", "Ġab", "1", "[PAD6]", "[PAD7]", "<|end|>", "<u>", "[PAD10]"
  };
  EXPECT_EQ(value_of<std::vector<std::string>>(pairs, "tokenizer.ggml.tokens"), tokens);
  const Types types = {1, 1, 1, 1, 1, 1, 5, 5, 3, 4, 5};
  EXPECT_EQ(value_of<Types>(pairs, "tokenizer.ggml.token_type"), types);
  const std::vector<std::string> merges = {"a b", "Ġ ab"};
  EXPECT_EQ(value_of<std::vector<std::string>>(pairs, "tokenizer.ggml.merges"), merges);
  EXPECT_FALSE(value_of<bool>(pairs, "tokenizer.ggml.add_bos_token"));
  EXPECT_FALSE(value_of<bool>(pairs, "tokenizer.ggml.add_eos_token"));
  EXPECT_FALSE(has_key(pairs, "tokenizer.ggml.scores"));
  expect_same_ids(byte_tokenizer(), pairs, {"ab ab11", "<|end|>b<u>", "", "ba ab"});
}

TEST(VocabularyMetadataTest, WritesPieces) {
  const VocabularyMetadata vocabulary = written_pieces(piece_tokenizer());
  const Metadata& pairs = vocabulary.pairs;
  EXPECT_TRUE(vocabulary.notes.empty());
  EXPECT_EQ(value_of<std::string>(pairs, "tokenizer.ggml.model"), "llama");
  EXPECT_EQ(value_of<std::string>(pairs, "tokenizer.ggml.pre"), "default");
  const auto scores = value_of<std::vector<float>>(pairs, "tokenizer.ggml.scores");
  const auto types = value_of<Types>(pairs, "tokenizer.ggml.token_type");
  ASSERT_EQ(scores.size(), kSpaceH + 1U);
  ASSERT_EQ(types.size(), kSpaceH + 1U);
  EXPECT_EQ(scores[kSpaceHi], 0.0F);
  EXPECT_EQ(scores[kSpaceH], -2.0F);
  EXPECT_EQ(scores[kHi], -3.0F);
  EXPECT_EQ(scores[kH], -4.0F);
  EXPECT_EQ(types[kUnk], 2);
  EXPECT_EQ(types[kBos], 3);
  EXPECT_EQ(types[kFirstByte], 6);
  EXPECT_EQ(types[kHi], 1);
  EXPECT_TRUE(value_of<bool>(pairs, "tokenizer.ggml.add_space_prefix"));
  EXPECT_TRUE(value_of<bool>(pairs, "tokenizer.ggml.add_bos_token"));
  EXPECT_EQ(value_of<std::uint32_t>(pairs, "tokenizer.ggml.bos_token_id"), kBos + 0U);
  EXPECT_FALSE(has_key(pairs, "tokenizer.ggml.merges"));
  expect_same_ids(piece_tokenizer(), pairs, {"hi", "hi hi", "h\xC3\xA4", "i  hhi", "<s>hi</s>i"});
}

TEST(VocabularyMetadataTest, KnowsWhichPiecesReadersPrintAsSpaces) {
  const std::string spaces = "\xE2\x96\x81\xE2\x96\x81";
  const auto kind_and_text = [&](bool merged, bool normalized) {
    Json tokenizer = piece_tokenizer();
    tokenizer["model"]["vocab"][spaces] = kSpaceH + 1;
    if (merged) {
      tokenizer["model"]["merges"].push_back(Json::array({"\xE2\x96\x81", "\xE2\x96\x81"}));
    }
    tokenizer["added_tokens"].push_back(
        added(kSpaceH + 1, spaces, false, {{"normalized", normalized}})
    );
    const Metadata pairs = written(tokenizer, kSpaceH + 2).pairs;
    return std::pair(
        value_of<Types>(pairs, "tokenizer.ggml.token_type").back(),
        value_of<std::vector<std::string>>(pairs, "tokenizer.ggml.tokens").back()
    );
  };
  EXPECT_EQ(kind_and_text(true, false), std::pair(1, spaces));
  // Matched after spaces were replaced: readers match before.
  EXPECT_EQ(kind_and_text(true, true), std::pair(4, std::string("  ")));
}

TEST(VocabularyMetadataTest, TakesMergesOfEqualPieces) {
  // Runs, whose merges alternate as those of equal scores do.
  Json tokenizer = piece_tokenizer();
  Json& model = tokenizer["model"];
  std::int32_t id = kSpaceH;
  for (const char* run : {"hh", "ii", "hhh", "iii"}) {
    model["vocab"][run] = ++id;
  }
  Json& merges = model["merges"];
  for (const auto& [left, right] : std::vector<std::pair<std::string, std::string>>{
           {"hh", "h"}, {"ii", "i"}, {"h", "hh"}, {"i", "ii"}, {"h", "h"}, {"i", "i"}
       }) {
    merges.push_back(Json::array({left, right}));
  }
  const Metadata pairs = written(tokenizer, id + 1).pairs;
  const auto scores = value_of<std::vector<float>>(pairs, "tokenizer.ggml.scores");
  EXPECT_EQ(scores[kSpaceH + 3], scores[kSpaceH + 4]);
  expect_same_ids(tokenizer, pairs, {"hhhhh", "iiii", "ihihhhiiih", "hi hhi"});
  // The same in an order that no scores have.
  std::swap(merges[4], merges[6]);
  expect_error(ErrorCode::kUnsupported, {"make pieces in turn"}, [&] {
    written(tokenizer, id + 1);
  });
}

// Every row of the table comes back by its usual name.
TEST(VocabularyMetadataTest, NamesPatterns) {
  for (const PreTokenizer& row : pre_tokenizers()) {
    if (row.names.front() == "glm4") {
      continue;  // The same rule as Llama 3's, but for a default.
    }
    Json steps = Json::array();
    for (const std::string_view pattern : row.patterns) {
      steps.push_back(
          {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}}
      );
    }
    steps.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}});
    const Json tokenizer = {
        {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", steps}}},
        {"model", {{"ignore_merges", row.ignore_merges}}},
    };
    EXPECT_EQ(split_name(tokenizer), row.names.front());
  }
  Json digits = byte_tokenizer();
  digits["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers", {{{"type", "Digits"}, {"individual_digits", true}}, digits["pre_tokenizer"]}
      },
  };
  EXPECT_EQ(split_name(digits), "smollm");
}

TEST(VocabularyMetadataTest, RefusesPatternsWithoutAName) {
  const auto refuses = [](const Json& step, std::string_view word, bool ignores_merges = false) {
    Json tokenizer = byte_tokenizer();
    const Json bytes = tokenizer["pre_tokenizer"];
    tokenizer["pre_tokenizer"] = {
        {"type", "Sequence"}, {"pretokenizers", Json::array({step, bytes})}
    };
    tokenizer["model"]["ignore_merges"] = ignores_merges;
    expect_error(ErrorCode::kUnsupported, {"tokenizer.json", word}, [&] { split_name(tokenizer); });
  };
  const auto split = [](const Json& pattern, const char* behavior) {
    return Json{{"type", "Split"}, {"pattern", pattern}, {"behavior", behavior}};
  };
  refuses(split({{"Regex", "x+"}}, "Isolated"), "x+ and 's");
  refuses(split({{"Regex", R"(\p{N})"}}, "MergedWithNext"), "MergedWithNext");
  refuses(split({{"Regex", R"(\p{N})"}}, "Isolated"), "ignore_merges", true);
  refuses(split({{"String", "x"}}, "Isolated"), "String");
  refuses({{"type", "Punctuation"}}, "Punctuation");
  refuses({{"type", "Digits"}, {"individual_digits", false}}, "Digits");
  refuses(7, "'7'");
  Json prefixed = byte_tokenizer();
  prefixed["pre_tokenizer"]["add_prefix_space"] = true;
  expect_error(ErrorCode::kUnsupported, {"add_prefix_space"}, [&] { written(prefixed); });
  Json none = byte_tokenizer();
  none["pre_tokenizer"] = nullptr;
  expect_error(ErrorCode::kUnsupported, {"ByteLevel"}, [&] { written(none); });
}

TEST(VocabularyMetadataTest, NamesSpecialTokens) {
  const Json names = {
      {"bos_token", "<|end|>"},
      {"eos_token", "<|end|>"},
      {"pad_token", "<u>"},
      {"add_bos_token", true},
      {"add_eos_token", true},
  };
  const Metadata pairs =
      written(Files{{"tokenizer.json", byte_tokenizer()}, {"tokenizer_config.json", names}}).pairs;
  EXPECT_EQ(value_of<std::uint32_t>(pairs, "tokenizer.ggml.bos_token_id"), 8U);
  EXPECT_EQ(value_of<std::uint32_t>(pairs, "tokenizer.ggml.eos_token_id"), 8U);
  EXPECT_EQ(value_of<std::uint32_t>(pairs, "tokenizer.ggml.padding_token_id"), 9U);
  EXPECT_TRUE(value_of<bool>(pairs, "tokenizer.ggml.add_bos_token"));
  EXPECT_TRUE(value_of<bool>(pairs, "tokenizer.ggml.add_eos_token"));
}

TEST(VocabularyMetadataTest, NamesTokensThatEndAnswers) {
  const auto with_ends = [](const Json& ends) {
    const Json config = {{"eos_token_id", ends}, {"pad_token_id", 77}, {"unk_token_id", -1}};
    return written(
        Files{{"tokenizer.json", byte_tokenizer()}, {"config.json", config}}, 10, config
    );
  };
  // Readers know <|end|> by its text.
  const VocabularyMetadata three = with_ends({0, 1, 2, 8});
  EXPECT_EQ(value_of<std::uint32_t>(three.pairs, "tokenizer.ggml.eos_token_id"), 0U);
  EXPECT_EQ(value_of<std::uint32_t>(three.pairs, "tokenizer.ggml.eot_token_id"), 1U);
  EXPECT_EQ(value_of<std::uint32_t>(three.pairs, "tokenizer.ggml.eom_token_id"), 2U);
  ASSERT_EQ(three.notes.size(), 1U);
  EXPECT_EQ(three.notes[0], "pad_token_id is 77, and the model has 10 tokens: it is not written");
  EXPECT_FALSE(has_key(three.pairs, "tokenizer.ggml.padding_token_id"));
  EXPECT_FALSE(has_key(three.pairs, "tokenizer.ggml.unknown_token_id"));
  EXPECT_EQ(with_ends({0, 1, 2, 3}).notes.size(), 2U);
  EXPECT_FALSE(has_key(with_ends(8).pairs, "tokenizer.ggml.eot_token_id"));
}

TEST(VocabularyMetadataTest, KeepsTemplates) {
  const auto templates = [](Files files) {
    files.emplace("tokenizer.json", byte_tokenizer());
    return written(files).pairs;
  };
  const Metadata one = templates({{"tokenizer_config.json", {{"chat_template", "{{ x }}"}}}});
  EXPECT_EQ(value_of<std::string>(one, "tokenizer.chat_template"), "{{ x }}");
  EXPECT_FALSE(has_key(one, "tokenizer.chat_templates"));
  const Json list = {
      {{"name", "default"}, {"template", "{{ x }}"}},
      {{"name", "tool-use"}, {"template", "{{ y }}"}}
  };
  const Metadata named = templates({{"tokenizer_config.json", {{"chat_template", list}}}});
  EXPECT_EQ(value_of<std::string>(named, "tokenizer.chat_template"), "{{ x }}");
  EXPECT_EQ(value_of<std::string>(named, "tokenizer.chat_template.tool_use"), "{{ y }}");
  const Metadata file = templates(
      {{"chat_template.jinja", "{{ z }}"}, {"tokenizer_config.json", {{"chat_template", "{{ x }}"}}}
      }
  );
  EXPECT_EQ(value_of<std::string>(file, "tokenizer.chat_template"), "{{ z }}");
  expect_error(ErrorCode::kCorruptData, {"chat_template"}, [&] {
    templates({{"tokenizer_config.json", {{"chat_template", Json::array({7})}}}});
  });
}

TEST(VocabularyMetadataTest, NotesWhatReadersDoOtherwise) {
  Json composed = byte_tokenizer();
  composed["normalizer"] = {{"type", "NFC"}};
  ASSERT_EQ(written(composed).notes.size(), 1U);
  EXPECT_NE(written(composed).notes[0].find("NFC"), std::string::npos);
  EXPECT_NE(written(byte_tokenizer(), 9).notes.at(0).find("1 tokens have ids"), std::string::npos);
  Json flagged = byte_tokenizer();
  flagged["added_tokens"][1]["lstrip"] = true;
  EXPECT_NE(written(flagged).notes.at(0).find("take spaces"), std::string::npos);
  Json first = piece_tokenizer();
  first["normalizer"] = nullptr;
  first["pre_tokenizer"] = {
      {"type", "Metaspace"},
      {"replacement", "\xE2\x96\x81"},
      {"prepend_scheme", "first"},
      {"split", false},
  };
  EXPECT_NE(written_pieces(first).notes.at(0).find("before every text"), std::string::npos);
  first["pre_tokenizer"]["prepend_scheme"] = "never";
  EXPECT_TRUE(written_pieces(first).notes.empty());
  const VocabularyMetadata none = written(Files{});
  EXPECT_EQ(value_of<std::string>(none.pairs, "tokenizer.ggml.model"), "none");
  EXPECT_EQ(none.notes.size(), 1U);
}

}  // namespace
}  // namespace saker::load::gguf

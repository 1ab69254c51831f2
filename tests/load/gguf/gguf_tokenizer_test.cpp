// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_tokenizer.h"

#include "saker/base/error.h"
#include "saker/text/tokenizer.h"

#include "tests/support/expect_error.h"
#include "tests/support/gguf_builder.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {
namespace {

using saker::testing::expect_error;
using saker::testing::GgufBuilder;
using Ids = std::vector<std::int32_t>;

struct Files {
  std::map<std::string, std::string> texts;
  std::vector<std::string> notes;
};

Files files_of(const std::string& file) {
  const Header header = parse_gguf(std::as_bytes(std::span(file)), "file");
  const auto vocabulary = read_vocabulary(header);
  Files files{.texts = {}, .notes = vocabulary_notes(header, vocabulary)};
  if (vocabulary) {
    files.texts = tokenizer_files(header, *vocabulary);
  }
  return files;
}

Json ids_of(const GgufBuilder& builder) {
  const std::string file = builder.file();
  const Header header = parse_gguf(std::as_bytes(std::span(file)), "file");
  Json config = Json::object();
  add_token_ids(read_vocabulary(header).value(), config);
  return config;
}

std::shared_ptr<const text::Tokenizer> tokenizer_of(const std::string& file) {
  return text::Tokenizer::parse(files_of(file).texts.at("tokenizer.json"), "tokenizer.json");
}

GgufBuilder byte_level() {
  GgufBuilder builder;
  builder.string("tokenizer.ggml.model", "gpt2")
      .string("tokenizer.ggml.pre", "qwen2")
      .strings("tokenizer.ggml.tokens", {"a", "b", "ab", "Ġ", "Ġab", "1", "<|end|>", "<u>"})
      .integers("tokenizer.ggml.token_type", {1, 1, 1, 1, 1, 1, 3, 4})
      .strings("tokenizer.ggml.merges", {"a b", "Ġ ab"})
      .integer("tokenizer.ggml.bos_token_id", 6)
      .integer("tokenizer.ggml.eos_token_id", 6);
  return builder;
}

GgufBuilder pieces() {
  GgufBuilder builder;
  builder.string("tokenizer.ggml.model", "llama")
      .strings(
          "tokenizer.ggml.tokens",
          {"<unk>",
           "<s>",
           "</s>",
           "<0xC3>",
           "<0xA4>",
           "\xE2\x96\x81",
           "h",
           "i",
           "hi",
           "\xE2\x96\x81hi",
           "\xE2\x96\x81h"}
      )
      .floats("tokenizer.ggml.scores", {0, 0, 0, 0, 0, -9, -8, -7, -3, -1, -2})
      .integers("tokenizer.ggml.token_type", {2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 1})
      .integer("tokenizer.ggml.bos_token_id", 1)
      .integer("tokenizer.ggml.eos_token_id", 2);
  return builder;
}

TEST(GgufTokenizerTest, MergesBytes) {
  const auto tokenizer = tokenizer_of(byte_level().file());
  EXPECT_EQ(tokenizer->encode("ab ab11"), (Ids{2, 4, 5, 5}));
  EXPECT_EQ(tokenizer->encode("<|end|>b<u>"), (Ids{6, 1, 7}));
  EXPECT_EQ(tokenizer->decode(Ids{2, 4, 6}), "ab ab<|end|>");
  EXPECT_EQ(tokenizer->decode(Ids{2, 6, 7}, {.skip_special_tokens = true}), "ab<u>");
}

TEST(GgufTokenizerTest, PiecesAreJson) {
  const std::vector<std::string> tokens{
      "\"", "\\", "\"\\", "\n", "\x01", "\x7f", "\xC3\xA4", "\"\xC3\xA4", "\"", ""
  };
  GgufBuilder builder;
  builder.string("tokenizer.ggml.model", "gpt2")
      .string("tokenizer.ggml.pre", "qwen2")
      .strings("tokenizer.ggml.tokens", tokens)
      .strings("tokenizer.ggml.merges", {"\" \\", "\" \xC3\xA4", "\" x"});
  const Files files = files_of(builder.file());
  const Json model = parse_json(files.texts.at("tokenizer.json"), "tokenizer.json").at("model");
  ASSERT_EQ(model.at("vocab").size(), 9U);
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    EXPECT_EQ(model.at("vocab").at(tokens[id]), id == 8 ? 0 : id);
  }
  const Json merges = Json::array({{"\"", "\\"}, {"\"", "\xC3\xA4"}});
  EXPECT_EQ(model.at("merges"), merges);
  EXPECT_EQ(files.notes.size(), 2U);
}

TEST(GgufTokenizerTest, MergesPiecesByScore) {
  const auto tokenizer = tokenizer_of(pieces().file());
  // "hi" has a lower score than the piece of space and h, which is made first.
  EXPECT_EQ(tokenizer->encode("hi"), (Ids{1, 9}));
  EXPECT_EQ(tokenizer->encode("hi hi", {.add_special_tokens = false}), (Ids{9, 9}));
  EXPECT_EQ(tokenizer->encode("h\xC3\xA4", {.add_special_tokens = false}), (Ids{10, 3, 4}));
  EXPECT_EQ(tokenizer->decode(Ids{9, 9, 3, 4}), "hi hi\xC3\xA4");
}

// Pieces as above, but with merges.
GgufBuilder listed_pieces() {
  GgufBuilder builder;
  builder.string("tokenizer.ggml.model", "gemma4")
      .strings(
          "tokenizer.ggml.tokens",
          {"<unk>",
           "<bos>",
           "<eos>",
           "<0xC3>",
           "<0xA4>",
           "\xE2\x96\x81",
           "h",
           "i",
           "hi",
           "\xE2\x96\x81hi",
           "\n",
           "\n\n",
           "i\n"}
      )
      .integers("tokenizer.ggml.token_type", {2, 3, 3, 6, 6, 1, 1, 1, 1, 1, 1, 1, 1})
      .strings("tokenizer.ggml.merges", {"i \n", "h i", "\xE2\x96\x81 hi", "\n \n", "hi hi"})
      .integer("tokenizer.ggml.bos_token_id", 1)
      .integer("tokenizer.ggml.eos_token_id", 2);
  return builder;
}

TEST(GgufTokenizerTest, MergesPiecesByList) {
  const auto tokenizer = tokenizer_of(listed_pieces().file());
  EXPECT_EQ(tokenizer->encode("hi hi"), (Ids{1, 8, 9}));
  EXPECT_EQ(tokenizer->encode("  h\xC3\xA4"), (Ids{1, 5, 5, 6, 3, 4}));
  // Newlines are apart from other text.
  EXPECT_EQ(tokenizer->encode("hi\n\n\ni"), (Ids{1, 8, 11, 10, 7}));
  EXPECT_EQ(tokenizer->encode("<eos>hi"), (Ids{1, 2, 8}));
  EXPECT_EQ(tokenizer->decode(Ids{8, 9, 3, 4, 11}), "hi hi\xC3\xA4\n\n");
  const auto bare = listed_pieces().boolean("tokenizer.ggml.add_bos_token", false);
  EXPECT_EQ(tokenizer_of(bare.file())->encode("i"), (Ids{1, 7}));
  const auto notes = files_of(listed_pieces().file()).notes;
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("1 merges"), std::string::npos);
}

TEST(GgufTokenizerTest, HonoursFlags) {
  const auto bare = tokenizer_of(pieces()
                                     .boolean("tokenizer.ggml.add_space_prefix", false)
                                     .boolean("tokenizer.ggml.add_bos_token", false)
                                     .boolean("tokenizer.ggml.add_eos_token", true)
                                     .file());
  EXPECT_EQ(bare->encode("hi"), (Ids{8, 2}));
}

TEST(GgufTokenizerTest, KeepsTemplatesAndNames) {
  const auto config = [](const GgufBuilder& builder) {
    return Json::parse(files_of(builder.file()).texts.at("tokenizer_config.json"));
  };
  const Json plain = config(pieces().string("tokenizer.chat_template", "{{ x }}"));
  EXPECT_EQ(plain["bos_token"], "<s>");
  EXPECT_EQ(plain["eos_token"], "</s>");
  EXPECT_EQ(plain["chat_template"], "{{ x }}");
  const Json named = config(pieces()
                                .string("tokenizer.chat_template", "{{ x }}")
                                .string("tokenizer.chat_template.tool_use", "{{ y }}"));
  ASSERT_EQ(named["chat_template"].size(), 2U);
  EXPECT_EQ(named["chat_template"][0]["name"], "default");
  EXPECT_EQ(named["chat_template"][1]["name"], "tool_use");
  EXPECT_EQ(named["chat_template"][1]["template"], "{{ y }}");
}

TEST(GgufTokenizerTest, FindsWhatEndsAnAnswer) {
  EXPECT_EQ(ids_of(pieces())["bos_token_id"], 1);
  EXPECT_EQ(ids_of(pieces())["eos_token_id"], 2);
  const Json both = Json::array({2, 0});
  EXPECT_EQ(ids_of(pieces().integer("tokenizer.ggml.eot_token_id", 0))["eos_token_id"], both);
  EXPECT_EQ(ids_of(byte_level())["eos_token_id"], 6);
  // An id beyond the vocabulary is none.
  EXPECT_FALSE(ids_of(GgufBuilder()
                          .string("tokenizer.ggml.model", "gpt2")
                          .strings("tokenizer.ggml.tokens", {"a"})
                          .integer("tokenizer.ggml.eos_token_id", 7))
                   .contains("eos_token_id"));
}

Json ends_of(const GgufBuilder& builder) {
  return ids_of(builder).value("eos_token_id", Json());
}

GgufBuilder bytes_and(const std::vector<std::string>& tokens, std::int32_t type) {
  std::vector<std::string> all = {"a", "b"};
  all.insert(all.end(), tokens.begin(), tokens.end());
  std::vector<std::int32_t> types = {1, 1};
  types.resize(all.size(), type);
  GgufBuilder builder;
  builder.string("tokenizer.ggml.model", "gpt2")
      .string("tokenizer.ggml.pre", "qwen2")
      .strings("tokenizer.ggml.tokens", all)
      .integers("tokenizer.ggml.token_type", types);
  return builder;
}

// llama.cpp ends answers there, and takes the tokens as control tokens, whatever their type.
TEST(GgufTokenizerTest, KnowsEndsByTheirTexts) {
  const std::vector<std::string> texts = {
      "<|eot_id|>",
      "<|im_end|>",
      "<|end|>",
      "<|return|>",
      "<end_of_turn>",
      "<|endoftext|>",
      "</s>",
      "<|eom_id|>",
      "<EOT>",
      "_<EOT>",
      "[EOT]",
      "[EOS]",
      "<|end_of_text|>",
      "<end_of_utterance>",
      "<eos>",
      "<turn|>",
      "<｜end▁of▁sentence｜>",
      "[e~[",
      "<|fim_pad|>",
      "<|repo_name|>",
      "<|file_sep|>",
  };
  for (const std::string& text : texts) {
    for (const std::int32_t type : {1, 3, 4}) {
      const GgufBuilder builder = bytes_and({text}, type);
      EXPECT_EQ(ends_of(builder), 2) << text << type;
      const auto tokenizer = tokenizer_of(builder.file());
      EXPECT_EQ(tokenizer->encode("a" + text + "b"), (Ids{0, 2, 1})) << text << type;
      EXPECT_TRUE(tokenizer->is_special(2)) << text << type;
    }
  }
}

TEST(GgufTokenizerTest, KnowsControlTokensThatEndNothing) {
  for (const char* text : {"<|fim_prefix|>", "<fim-suffix>", "<MID>", "<｜fim▁begin｜>"}) {
    const GgufBuilder builder = bytes_and({text}, 1);
    EXPECT_TRUE(ends_of(builder).is_null()) << text;
    EXPECT_TRUE(tokenizer_of(builder.file())->is_special(2)) << text;
  }
  // What begins a turn is no text either.
  for (const char* text :
       {"<|im_start|>", "<｜User｜>", "<|start_header_id|>", "<start_of_turn>"}) {
    const GgufBuilder builder = bytes_and({text}, 1);
    EXPECT_TRUE(ends_of(builder).is_null()) << text;
    EXPECT_EQ(tokenizer_of(builder.file())->encode(text), Ids{2}) << text;
  }
  for (const char* text : {"<||>", "<| |>", "<p>", "|>"}) {
    EXPECT_FALSE(tokenizer_of(bytes_and({text}, 1).file())->is_special(2)) << text;
  }
  const auto channel = tokenizer_of(bytes_and({"<|channel|>"}, 3).file());
  EXPECT_EQ(channel->encode("<|channel|>"), Ids{2});
  EXPECT_EQ(channel->decode(Ids{2}, {.skip_special_tokens = true}), "<|channel|>");
}

TEST(GgufTokenizerTest, SomeEndsAreNoneBesideOthers) {
  EXPECT_EQ(ends_of(bytes_and({"<|end|>", "<|return|>"}, 3)), (Json{2, 3}));
  EXPECT_EQ(ends_of(bytes_and({"<|end|>", "<|return|>", "<|call|>"}, 3)), (Json{3, 4}));
  EXPECT_EQ(ends_of(bytes_and({"<|end|>", "<|flush|>", "<|calls|>"}, 3)), (Json{3, 4}));
  const GgufBuilder gemma = bytes_and({"<|tool_response>", "</s>", "<turn|>"}, 3);
  EXPECT_EQ(ends_of(gemma), (Json{4, 2}));
  EXPECT_FALSE(tokenizer_of(gemma.file())->is_special(3));
}

TEST(GgufTokenizerTest, KnowsEndsByTheirKeys) {
  for (const char* key : {"eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep"}) {
    EXPECT_EQ(
        ends_of(bytes_and({"x", "y"}, 1).integer(fmt::format("tokenizer.ggml.{}_token_id", key), 3)
        ),
        3
    ) << key;
  }
  // A key comes before texts.
  EXPECT_EQ(
      ends_of(bytes_and({"<|fim_pad|>", "y"}, 1).integer("tokenizer.ggml.fim_pad_token_id", 3)), 3
  );
  // SentencePiece has its first tokens by convention.
  GgufBuilder plain;
  plain.string("tokenizer.ggml.model", "llama")
      .strings("tokenizer.ggml.tokens", {"<u>", "<b>", "<e>", "a"})
      .floats("tokenizer.ggml.scores", {0, 0, 0, 0})
      .integers("tokenizer.ggml.token_type", {2, 3, 3, 1});
  EXPECT_EQ(ends_of(plain), 2);
  EXPECT_EQ(tokenizer_of(plain.file())->encode("a").front(), 1);
}

// Padding is often a piece of text, which stays one; null keeps defaults of tokenizer classes out.
TEST(GgufTokenizerTest, NamesNoPiecesOfText) {
  const std::string file = bytes_and({"<|im_end|>"}, 1)
                               .integer("tokenizer.ggml.eos_token_id", 2)
                               .integer("tokenizer.ggml.padding_token_id", 0)
                               .file();
  const Json config = Json::parse(files_of(file).texts.at("tokenizer_config.json"));
  EXPECT_EQ(config.at("eos_token"), "<|im_end|>");
  for (const char* name : {"pad_token", "unk_token", "bos_token"}) {
    EXPECT_EQ(config.at(name), nullptr) << name;
  }
}

TEST(GgufTokenizerTest, LeavesOutWhatCannotBe) {
  const auto files = files_of(GgufBuilder()
                                  .string("tokenizer.ggml.model", "gpt2")
                                  .strings("tokenizer.ggml.tokens", {"a", "b", "a"})
                                  .strings("tokenizer.ggml.merges", {"a b", "", "x"})
                                  .file());
  ASSERT_EQ(files.notes.size(), 2U);
  EXPECT_NE(files.notes[0].find("1 tokens repeat"), std::string::npos);
  EXPECT_NE(files.notes[1].find("3 merges"), std::string::npos);
  EXPECT_NO_THROW(text::Tokenizer::parse(files.texts.at("tokenizer.json"), "tokenizer.json"));
}

// All pieces a...ab...b up to these lengths: each cut of each is a way to make it.
TEST(GgufTokenizerTest, BoundsTheWaysToMakePieces) {
  constexpr std::size_t kLongest = 120;
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
  for (std::size_t a = 0; a <= kLongest; ++a) {
    for (std::size_t b = a == 0 ? 1 : 0; b <= kLongest; ++b) {
      tokens.push_back(std::string(a, 'a') + std::string(b, 'b'));
    }
  }
  std::vector<std::int32_t> types(tokens.size(), 1);
  types[0] = 2;
  types[1] = types[2] = 3;
  const std::string file = GgufBuilder()
                               .string("tokenizer.ggml.model", "llama")
                               .strings("tokenizer.ggml.tokens", tokens)
                               .floats("tokenizer.ggml.scores", std::vector<float>(tokens.size()))
                               .integers("tokenizer.ggml.token_type", types)
                               .integer("tokenizer.ggml.bos_token_id", 1)
                               .integer("tokenizer.ggml.eos_token_id", 2)
                               .file();
  expect_error(ErrorCode::kCorruptData, {"pieces", "ways"}, [&] { files_of(file); });
}

TEST(GgufTokenizerTest, RefusesByName) {
  const auto refused =
      [](ErrorCode code, const std::vector<std::string_view>& words, const GgufBuilder& file) {
        const std::string bytes = file.file();
        expect_error(code, words, [&] { files_of(bytes); });
      };
  refused(
      ErrorCode::kUnsupported,
      {"'bert'", "gpt2, llama or gemma4"},
      GgufBuilder().string("tokenizer.ggml.model", "bert")
  );
  refused(
      ErrorCode::kUnsupported,
      {"tokenizer.ggml.pre", "'odd'"},
      GgufBuilder()
          .string("tokenizer.ggml.model", "gpt2")
          .string("tokenizer.ggml.pre", "odd")
          .strings("tokenizer.ggml.tokens", {"a"})
  );
  refused(
      ErrorCode::kCorruptData,
      {"tokenizer.ggml.tokens"},
      GgufBuilder().string("tokenizer.ggml.model", "gpt2")
  );
  refused(
      ErrorCode::kCorruptData,
      {"token 0", "UTF-8"},
      GgufBuilder()
          .string("tokenizer.ggml.model", "gpt2")
          .strings("tokenizer.ggml.tokens", {"\xff"})
  );
  GgufBuilder scores;
  scores.string("tokenizer.ggml.model", "llama").strings("tokenizer.ggml.tokens", {"a", "b"});
  refused(ErrorCode::kCorruptData, {"0 numbers"}, scores);
  refused(
      ErrorCode::kCorruptData, {"1 entries"}, scores.integers("tokenizer.ggml.token_type", {1})
  );
  EXPECT_TRUE(files_of(GgufBuilder().file()).texts.empty());
  EXPECT_TRUE(files_of(GgufBuilder().string("tokenizer.ggml.model", "none").file()).texts.empty());
}

std::string read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<std::string> texts_of(const std::string& all) {
  constexpr std::string_view kBetween = "\n__ggml_vocab_test__\n";
  std::vector<std::string> texts;
  for (std::size_t at = 0; at <= all.size();) {
    const std::size_t end = std::min(all.find(kBetween, at), all.size());
    texts.push_back(all.substr(at, end - at));
    at = end + kBetween.size();
  }
  return texts;
}

// llama.cpp's vocabularies with the ids that it expects, which `make check-text` fetches.
TEST(GgufVocabulariesTest, GivesTheIdsOfLlamaCpp) {
  const char* folder = std::getenv("SAKER_GGUF_VOCABULARIES");
  if (folder == nullptr) {
    GTEST_SKIP() << "SAKER_GGUF_VOCABULARIES names no folder";
  }
  std::size_t checked = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string path = entry.path();
    if (!path.ends_with(".gguf") || !std::filesystem::exists(path + ".inp")) {
      continue;
    }
    std::shared_ptr<const text::Tokenizer> tokenizer;
    try {
      tokenizer = tokenizer_of(read(path));
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kUnsupported) << error.what();
      std::cout << "refused: " << entry.path().filename() << ": " << error.what() << '\n';
      continue;
    }
    std::istringstream lines(read(path + ".out"));
    std::size_t wrong = 0;
    std::size_t all = 0;
    for (const std::string& text : texts_of(read(path + ".inp"))) {
      std::string line;
      std::getline(lines, line);
      std::istringstream numbers(line);
      const Ids expected{std::istream_iterator<std::int32_t>(numbers), {}};
      const Ids got = tokenizer->encode(text, {.add_special_tokens = false});
      EXPECT_EQ(got, expected) << entry.path().filename() << ": " << text;
      wrong += got != expected ? 1 : 0;
      ++all;
    }
    std::cout << entry.path().filename() << ": " << all << " texts, " << wrong << " differ\n";
    ++checked;
  }
  EXPECT_GT(checked, 0U);
}

}  // namespace
}  // namespace saker::load::gguf

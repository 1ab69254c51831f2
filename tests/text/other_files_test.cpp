// SPDX-License-Identifier: Apache-2.0
// Tokens that files beside tokenizer.json name.
#include "saker/base/json/json.h"
#include "saker/text/chat_template.h"
#include "saker/text/eos_tokens.h"
#include "saker/text/tokenizer.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace saker::text {
namespace {

using Ids = std::vector<std::int32_t>;

void write_files(const testing::TemporaryDir& dir, const Json& files) {
  for (const auto& [name, content] : files.items()) {
    dir.write(name, content.is_string() ? content.get<std::string>() : content.dump());
  }
}

// Random folders (other_files_test.py --record) with what transformers' AutoTokenizer says.
TEST(OtherFiles, MeanWhatTheyMeanToAutoTokenizer) {
  const Json messages = {
      {{"role", "system"}, {"content", "Be <s> brief"}},
      {{"role", "user"}, {"content", "hi <|im_end|> \xC3\xA9"}},
  };
  const Json recorded = read_json_file(
      std::filesystem::path(SAKER_SOURCE_DIR) / "tests/text/golden/other_files.json"
  );
  ASSERT_GE(recorded.size(), 33U);
  for (std::size_t number = 0; number < recorded.size(); ++number) {
    const Json& folder = recorded[number];
    SCOPED_TRACE(fmt::format("folder {}", number));
    const testing::TemporaryDir dir;
    write_files(dir, folder.at("files"));
    const TokenizerConfig config = load_tokenizer_config(dir.path());
    const auto tokenizer = Tokenizer::load(dir.path(), config);
    EXPECT_EQ(tokenizer->vocab_size(), folder.at("vocab_size").get<int>());
    EXPECT_EQ(
        config.special_tokens,
        (folder.at("special_tokens").get<std::map<std::string, std::string>>())
    );
    EXPECT_EQ(load_eos_tokens(dir.path(), tokenizer.get(), config), folder.at("eos").get<Ids>());
    for (const Json& text : folder.at("texts")) {
      EXPECT_EQ(tokenizer->encode(text.at("text").get<std::string>()), text.at("ids").get<Ids>())
          << text.at("text");
    }
    if (!folder.at("chat").is_null()) {
      const auto prompt = ChatTemplate::load(dir.path(), config).value().render(messages);
      EXPECT_EQ(
          tokenizer->encode(prompt, {.add_special_tokens = false}), folder.at("chat").get<Ids>()
      );
    }
  }
}

// Bytes a to c, and what a folder's files add.
class OtherFilesTest : public ::testing::Test {
 protected:
  OtherFilesTest() { write_tokenizer("ByteLevel"); }

  void write_tokenizer(const std::string& decoder) const {
    const Json bytes = {
        {"type", "ByteLevel"},
        {"add_prefix_space", false},
        {"trim_offsets", true},
        {"use_regex", true}
    };
    const Json replace = {
        {"type", "Replace"}, {"pattern", {{"String", "\xE2\x96\x81"}}}, {"content", " "}
    };
    const Json tokenizer = {
        {"version", "1.0"},
        {"added_tokens", Json::array()},
        {"normalizer", nullptr},
        {"pre_tokenizer", bytes},
        {"post_processor", nullptr},
        {"decoder",
         decoder.empty()          ? Json()
         : decoder == "ByteLevel" ? bytes
                                  : Json(replace)},
        {"model",
         {{"type", "BPE"},
          {"vocab",
           {{"a", 0},
            {"b", 1},
            {"c", 2},
            {"\xC4\xA0", 3},
            {"\xC4\xA0"
             "a",
             4}}},
          {"merges", {"\xC4\xA0 a"}}}},
    };
    dir_.write("tokenizer.json", tokenizer.dump());
  }

  std::shared_ptr<const Tokenizer> load() const { return Tokenizer::load(dir_.path()); }

  testing::TemporaryDir dir_;
};

TEST_F(OtherFilesTest, NamesTokensWhoseIdsDiffer) {
  dir_.write(
      "tokenizer_config.json",
      R"({"added_tokens_decoder": {"5": {"content": "<x>"}, "2000000000": {"content": "<y>"}}})"
  );
  const auto tokenizer = load();
  EXPECT_EQ(tokenizer->encode("a<y><x>"), (Ids{0, 6, 5}));
  const std::string moved = tokenizer->moved_tokens();
  EXPECT_NE(moved.find("\"<y>\""), std::string::npos) << moved;
  EXPECT_NE(moved.find("2000000000"), std::string::npos) << moved;
  EXPECT_EQ(moved.find("<x>"), std::string::npos) << moved;
}

TEST_F(OtherFilesTest, AreFastWithThousandsOfTokens) {
  Json listed = Json::object();
  Json extra = Json::array();
  for (int i = 0; i < 20000; ++i) {
    listed.emplace(std::to_string(i + 5), Json({{"content", fmt::format("<{}>", i)}}));
    extra.push_back(fmt::format("<e{}>", i));
  }
  dir_.write(
      "tokenizer_config.json",
      Json({{"added_tokens_decoder", listed}, {"additional_special_tokens", extra}}).dump()
  );
  const auto start = std::chrono::steady_clock::now();
  const auto tokenizer = load();
  EXPECT_EQ(tokenizer->encode("<0><19999><e19999>"), (Ids{5, 20004, 40004}));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_F(OtherFilesTest, MayBeDamaged) {
  dir_.write("tokenizer_config.json", R"({"eos_token": "<x>")");
  dir_.write("special_tokens_map.json", R"({"eos_token": "<x>"})");
  dir_.write("added_tokens.json", "[");
  EXPECT_EQ(load()->encode("a<x>b"), (Ids{0, 5, 1}));
}

TEST_F(OtherFilesTest, VocabularyAndMergesMayStandForTokenizerJson) {
  std::filesystem::remove(dir_.path() / "tokenizer.json");
  dir_.write("vocab.json", R"({"a": 0, "b": 1, "ab": 2, "Ġ": 3, "Ġab": 4, "1": 5})");
  dir_.write("merges.txt", "#version: 0.2\na b\nĠ ab\n");
  dir_.write("added_tokens.json", R"({"<|im_start|>": 6})");
  EXPECT_EQ(Tokenizer::load_if_present(dir_.path(), load_tokenizer_config(dir_.path())), nullptr);
  dir_.write("tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  EXPECT_EQ(load()->encode("<|im_start|>ab ab11<|endoftext|>"), (Ids{6, 2, 4, 5, 5, 7}));
  dir_.write("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})");
  EXPECT_EQ(load()->encode("ab ab11"), (Ids{2, 4, 5, 5}));
  EXPECT_EQ(load()->decode(Ids{2, 4}), "ab ab");
  for (const char* merges : {"a", "a b c", "a \xff"}) {
    dir_.write("merges.txt", merges);
    testing::expect_error(ErrorCode::kCorruptData, {"merges.txt"}, [&] { load(); });
  }
  dir_.write("merges.txt", "");
  dir_.write("vocab.json", "[]");
  testing::expect_error(ErrorCode::kCorruptData, {"vocab.json"}, [&] { load(); });
}

// Words are cut into letters for bytes, so that no other decoder can give text.
TEST_F(OtherFilesTest, LettersForBytesBecomeTextWhateverTheDecoder) {
  for (const char* decoder : {"ByteLevel", "Replace", ""}) {
    write_tokenizer(decoder);
    EXPECT_EQ(load()->decode(Ids{0, 4, 3, 1}), "a a b") << decoder;
  }
}

}  // namespace
}  // namespace saker::text

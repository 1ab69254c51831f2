// SPDX-License-Identifier: Apache-2.0
#include "saker/text/eos_tokens.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include "tests/text/golden_tokenizers.h"
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace saker::text {
namespace {

using Ids = std::vector<std::int32_t>;

class EosTokensTest : public ::testing::Test {
 protected:
  Ids load() const {
    return load_eos_tokens(dir_.path(), tokenizer_.get(), load_tokenizer_config(dir_.path()));
  }

  testing::TemporaryDir dir_;
  std::shared_ptr<const Tokenizer> tokenizer_ = GoldenTokenizer("words").tokenizer;  // "</s>" is 4.
};

TEST_F(EosTokensTest, NeedsNoFile) {
  EXPECT_EQ(load(), Ids{});
}

TEST_F(EosTokensTest, ReadsNumbersAndLists) {
  dir_.write("config.json", R"({"eos_token_id": 7})");
  EXPECT_EQ(load(), Ids{7});
  dir_.write("config.json", R"({"eos_token_id": [9, 7, null, 9]})");
  EXPECT_EQ(load(), (Ids{7, 9}));
  for (const auto* none : {"null", "-1", "[-1]"}) {
    dir_.write("config.json", std::string(R"({"eos_token_id": )") + none + "}");
    EXPECT_EQ(load(), Ids{}) << none;
  }
}

TEST_F(EosTokensTest, ReadsTheTextsConfiguration) {
  dir_.write("config.json", R"({"text_config": {"eos_token_id": [7, 8]}})");
  EXPECT_EQ(load(), (Ids{7, 8}));
  dir_.write("config.json", R"({"eos_token_id": 9, "text_config": {"eos_token_id": 7}})");
  EXPECT_EQ(load(), Ids{9});
}

TEST_F(EosTokensTest, GenerationConfigReplacesUnlessItSaysNothing) {
  dir_.write("config.json", R"({"eos_token_id": 7})");
  dir_.write("generation_config.json", R"({"eos_token_id": [1, 2]})");
  EXPECT_EQ(load(), (Ids{1, 2}));
  for (const auto* nothing :
       {"{}", R"({"eos_token_id": null})", R"({"eos_token_id": 0})", R"({"eos_token_id": []})"}) {
    dir_.write("generation_config.json", nothing);
    EXPECT_EQ(load(), Ids{7}) << nothing;
  }
}

TEST_F(EosTokensTest, ABrokenGenerationConfigSaysNothing) {
  dir_.write("config.json", R"({"eos_token_id": 7})");
  for (const auto* broken : {"", "[]", R"({"eos_token_id": 1,})", R"({"eos_token_id": "</s>"})"}) {
    dir_.write("generation_config.json", broken);
    EXPECT_EQ(load(), Ids{7}) << broken;
  }
}

TEST_F(EosTokensTest, JoinsTheTokenizersOwn) {
  dir_.write("config.json", R"({"eos_token_id": 7})");
  dir_.write("tokenizer_config.json", R"({"eos_token": "</s>"})");
  EXPECT_EQ(load(), (Ids{4, 7}));
  dir_.write("tokenizer_config.json", R"({"eos_token": {"content": "</s>", "lstrip": false}})");
  EXPECT_EQ(load(), (Ids{4, 7}));
  dir_.write("tokenizer_config.json", R"({"eos_token": "unknown"})");
  EXPECT_EQ(load(), Ids{7});
}

TEST_F(EosTokensTest, KnowsWhatTheTokenizersClassKnows) {
  dir_.write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})");
  EXPECT_EQ(load(), (Ids{4}));
  dir_.write(
      "tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer", "eos_token": null})"
  );
  EXPECT_EQ(load(), Ids{});
}

TEST_F(EosTokensTest, NeedsNoTokenizer) {
  dir_.write("config.json", R"({"eos_token_id": 7})");
  dir_.write("tokenizer_config.json", R"({"eos_token": "</s>"})");
  tokenizer_ = nullptr;
  EXPECT_EQ(load(), Ids{7});
}

TEST_F(EosTokensTest, RefusesWhatIsNoId) {
  for (const auto* value :
       {"-7", "1.5", "\"</s>\"", "[1, -2]", "4294967296", "true", "[[1]]", "{}"}) {
    dir_.write("config.json", std::string(R"({"eos_token_id": )") + value + "}");
    testing::expect_error(ErrorCode::kCorruptData, {"eos_token_id", "config.json"}, [&] {
      load();
    });
  }
}

}  // namespace
}  // namespace saker::text

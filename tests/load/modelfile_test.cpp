// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/modelfile.h"

#include "saker/base/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace saker::load {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

TEST(Modelfile, NamesAModelAndItsDraft) {
  const auto file = parse_modelfile(
      "# a comment\r\n"
      "\n"
      "from  ./target model \r\n"
      "PARAMETER temperature 0.7\n"
      "Parameter top_k 20\n"
      "TEMPLATE \"\"\"{{ .Prompt }}\r\nFROM elsewhere\nDRAFT x\"\"\"  \n"
      "SYSTEM \"\"\"one line\"\"\"\n"
      "  DRAFT \"../draft\"",
      "file"
  );
  EXPECT_EQ(file.from, "./target model");
  EXPECT_EQ(file.draft, "../draft");
  EXPECT_EQ(file.chat_template, "{{ .Prompt }}\nFROM elsewhere\nDRAFT x");
  EXPECT_EQ(file.system, "one line");
  EXPECT_THAT(file.instructions, ElementsAre("FROM", "PARAMETER", "TEMPLATE", "SYSTEM", "DRAFT"));
  EXPECT_EQ(parse_modelfile("FROM a", "file").draft, "");
}

TEST(Modelfile, SaysHowTheModelRuns) {
  const auto file = parse_modelfile(
      "FROM a\n"
      "ADAPTER ./lora\n"
      "PARAMETER stop \"<|im_end|>\"\n"
      "PARAMETER stop \"\"\"two\nlines\"\"\"\n"
      "PARAMETER temperature 0.7\n"
      "SYSTEM \"You are\n\"\"quoted\"\" here.\"\n"
      "SYSTEM Be brief.\n"
      "MESSAGE user Why is it so?\n"
      "MESSAGE assistant \"\"\"Since\n\n  it is.\"\"\"\n"
      "LICENSE one\nLICENSE \"\"\"two\"\"\"\n",
      "file"
  );
  EXPECT_EQ(file.adapter, "./lora");
  ASSERT_EQ(file.parameters.size(), 3U);
  EXPECT_EQ(file.parameters[0].name, "stop");
  EXPECT_EQ(file.parameters[0].value, "<|im_end|>");
  EXPECT_EQ(file.parameters[1].value, "two\nlines");
  EXPECT_EQ(file.parameters[2].value, "0.7");
  EXPECT_EQ(file.system, "Be brief.");
  ASSERT_EQ(file.messages.size(), 2U);
  EXPECT_EQ(file.messages[0].role, "user");
  EXPECT_EQ(file.messages[0].content, "Why is it so?");
  EXPECT_EQ(file.messages[1].content, "Since\n\n  it is.");
  EXPECT_THAT(file.licenses, ElementsAre("one", "two"));
}

TEST(Modelfile, SaysWhatIsWrong) {
  for (const auto& [text, word] : {
           std::pair<std::string_view, std::string_view>{"", "no FROM"},
           {"DRAFT a\n", "no FROM"},
           {"FROM\n", "line 1: FROM names nothing"},
           {"FROM \"\"\n", "line 1: FROM names nothing"},
           {"FROM a\n\nFROM b\n", "line 3: a second FROM"},
           {"FROM a\nDRAFT b\nDRAFT c\n", "line 3: a second DRAFT"},
           {"FROM a\nQUANTIZE 4\n", "line 2: 'QUANTIZE'"},
           {"FROM a\n\x01\xff\n", "line 2: '\\x01\\xff'"},
           {"FROM a\nSYSTEM \"\"\"b\nc\n", "line 2: the text has no closing"},
           {"FROM a\nSYSTEM \"b\nc\n", "line 2: the text has no closing"},
           {"FROM a\nMESSAGE tool b\n", "line 2: MESSAGE 'tool'"},
           {"FROM a\nMESSAGE\n", "line 2: MESSAGE ''"},
           {"FROM a\nPARAMETER seed\n", "line 2: PARAMETER"},
           {"FROM a\nADAPTER b\nADAPTER c\n", "line 3: a second ADAPTER"},
       }) {
    SCOPED_TRACE(text);
    expect_error(ErrorCode::kCorruptData, {"file", word}, [&] { parse_modelfile(text, "file"); });
  }
}

TEST(Modelfile, FindsFoldersBesideItself) {
  const testing::TemporaryDir dir;
  std::filesystem::create_directories(dir.path() / "models/target");
  std::filesystem::create_directories(dir.path() / "draft");
  const auto path = dir.write("models/Modelfile", "FROM target\nDRAFT ../draft\nLICENSE mine\n");
  const auto found = read_modelfile(path);
  EXPECT_TRUE(std::filesystem::equivalent(found.from, dir.path() / "models/target"));
  EXPECT_TRUE(std::filesystem::equivalent(found.draft, dir.path() / "draft"));
  EXPECT_THAT(found.ignored, ElementsAre("LICENSE"));
  dir.write("models/Modelfile", "FROM target\nADAPTER lora\n");
  expect_error(ErrorCode::kUnsupported, {"Modelfile", "--adapter", "--fuse"}, [&] {
    read_modelfile(path);
  });
  dir.write("models/Modelfile", "FROM target\nDRAFT nowhere/at/all\n");
  expect_error(ErrorCode::kNotFound, {"nowhere/at/all"}, [&] { read_modelfile(path); });
  expect_error(ErrorCode::kNotFound, {"none"}, [&] { read_modelfile(dir.path() / "none"); });
}

}  // namespace
}  // namespace saker::load

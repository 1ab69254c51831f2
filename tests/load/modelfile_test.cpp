// SPDX-License-Identifier: Apache-2.0
#include "saker/load/foreign/modelfile.h"

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
      "TEMPLATE \"\"\"{{ .Prompt }}\nFROM elsewhere\nDRAFT x\"\"\"\n"
      "SYSTEM \"\"\"one line\"\"\"\n"
      "  DRAFT \"../draft\"",
      "file"
  );
  EXPECT_EQ(file.from, "./target model");
  EXPECT_EQ(file.draft, "../draft");
  EXPECT_THAT(file.ignored, ElementsAre("PARAMETER", "TEMPLATE", "SYSTEM"));
  EXPECT_EQ(parse_modelfile("FROM a", "file").draft, "");
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
       }) {
    SCOPED_TRACE(text);
    expect_error(ErrorCode::kCorruptData, {"file", word}, [&] { parse_modelfile(text, "file"); });
  }
  expect_error(ErrorCode::kUnsupported, {"line 2", "--adapter", "--fuse"}, [] {
    parse_modelfile("FROM a\nADAPTER b\n", "file");
  });
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
  dir.write("models/Modelfile", "FROM target\nDRAFT nowhere/at/all\n");
  expect_error(ErrorCode::kNotFound, {"nowhere/at/all"}, [&] { read_modelfile(path); });
  expect_error(ErrorCode::kNotFound, {"none"}, [&] { read_modelfile(dir.path() / "none"); });
}

}  // namespace
}  // namespace saker::load

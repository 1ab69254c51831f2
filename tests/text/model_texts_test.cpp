// SPDX-License-Identifier: Apache-2.0
#include "saker/text/model_texts.h"

#include "saker/base/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace saker::text {
namespace {

using saker::testing::expect_error;
using saker::testing::TemporaryDir;
using Names = std::vector<std::string>;

TEST(ModelTexts, AreTheFilesOfAFolder) {
  const TemporaryDir dir;
  dir.write("config.json", R"({"a": 1})");
  dir.write("templates/b.jinja", "b");
  dir.write("templates/a.jinja", "a");
  dir.write("templates/a.txt", "a");
  const ModelTexts texts(dir.path());
  EXPECT_TRUE(texts.has("config.json"));
  EXPECT_FALSE(texts.has("missing"));
  EXPECT_EQ(texts.read_json("config.json"), Json({{"a", 1}}));
  EXPECT_EQ(
      texts.names_in("templates", ".jinja"), (Names{"templates/a.jinja", "templates/b.jinja"})
  );
  EXPECT_EQ(texts.names_in("missing", ".jinja"), Names());
  expect_error(ErrorCode::kNotFound, {"missing", "No such file"}, [&] {
    texts.read("missing", 9);
  });
  expect_error(ErrorCode::kCorruptData, {"config.json", "8 bytes", "at most 7"}, [&] {
    texts.read("config.json", 7);
  });
}

TEST(ModelTexts, MayBeInMemoryOrElsewhere) {
  const TemporaryDir dir;
  std::map<std::string, ModelTexts::Text, std::less<>> held;
  held.emplace("tokenizer.json", std::string("{]"));
  held.emplace("templates/a.jinja", dir.write("other", "elsewhere"));
  held.emplace("gone", dir.path() / "gone");
  const ModelTexts texts(std::filesystem::path("model.gguf"), std::move(held));
  EXPECT_TRUE(texts.has("tokenizer.json"));
  EXPECT_TRUE(texts.has("templates/a.jinja"));
  EXPECT_FALSE(texts.has("gone"));
  EXPECT_FALSE(texts.has("config.json"));
  EXPECT_EQ(texts.read("templates/a.jinja", 9), "elsewhere");
  EXPECT_EQ(texts.names_in("templates", ".jinja"), Names{"templates/a.jinja"});
  expect_error(ErrorCode::kCorruptData, {"model.gguf", "tokenizer.json", "byte 2"}, [&] {
    texts.read_json("tokenizer.json");
  });
  expect_error(ErrorCode::kCorruptData, {"tokenizer.json", "2 bytes", "at most 1"}, [&] {
    texts.read("tokenizer.json", 1);
  });
  expect_error(ErrorCode::kNotFound, {"model.gguf", "config.json", "missing"}, [&] {
    texts.read("config.json", 9);
  });
  EXPECT_NE(texts.shown("templates/a.jinja").find("/other'"), std::string::npos);
}

}  // namespace
}  // namespace saker::text

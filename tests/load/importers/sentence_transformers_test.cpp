// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/sentence_transformers.h"

#include "saker/base/error.h"
#include "saker/models/embedding_config.h"

#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace saker::load::importers {
namespace {

using testing::TemporaryDir;

constexpr std::string_view kOldPooling = R"({"pooling_mode_mean_tokens": true})";

// The section that the folder's files give.
Json section_of(const TemporaryDir& dir) {
  Json config = Json::object();
  ModelTensors tensors;
  add_sentence_transformers(dir.path(), config, tensors);
  return config.contains(models::kTextEmbedding) ? config[std::string(models::kTextEmbedding)]
                                                 : Json();
}

std::string module_text(std::string_view type, std::string_view path) {
  return fmt::format(R"({{"type": "x.y.{}", "path": "{}"}})", type, path);
}

Json with_pooling(std::string_view pooling) {
  const TemporaryDir dir;
  dir.write(
      "modules.json",
      "[" + module_text("Transformer", "") + "," + module_text("Pooling", "1_Pooling") + "]"
  );
  dir.write("1_Pooling/config.json", pooling);
  return section_of(dir);
}

Json with_modules(const std::string& modules) {
  const TemporaryDir dir;
  dir.write("modules.json", modules);
  dir.write("1_Pooling/config.json", kOldPooling);
  dir.write("2_Dense/config.json", R"({"activation_function": "torch.nn.GELU"})");
  return section_of(dir);
}

std::string problem_of(const Json& section) {
  return section.is_object() ? section.value("problem", "") : "no section";
}

TEST(SentenceTransformers, NothingWithoutModules) {
  EXPECT_TRUE(section_of(TemporaryDir()).is_null());
}

TEST(SentenceTransformers, PoolingOfOldAndNewFiles) {
  EXPECT_EQ(with_pooling(kOldPooling)["pooling"], "mean");
  EXPECT_EQ(with_pooling(R"({"pooling_mode_lasttoken": true})")["pooling"], "last");
  EXPECT_EQ(with_pooling(R"({"pooling_mode_cls_token": true})")["pooling"], "cls");
  EXPECT_EQ(with_pooling(R"({"pooling_mode": "lasttoken"})")["pooling"], "last");
  EXPECT_EQ(with_pooling(R"({"pooling_mode": ["mean"]})")["pooling"], "mean");
  EXPECT_EQ(with_pooling(kOldPooling)["normalize"], false);
}

TEST(SentenceTransformers, ProblemsAreKeptForThoseWhoAsk) {
  const auto says = [](const Json& section, std::string_view word) {
    const std::string problem = problem_of(section);
    EXPECT_NE(problem.find(word), std::string::npos) << "'" << word << "' is not in: " << problem;
  };
  says(with_pooling(R"({"pooling_mode": "max"})"), "'max'");
  says(with_pooling(R"({"pooling_mode": ["mean", "cls"]})"), "'mean' and 'cls'");
  says(with_pooling(R"({"pooling_mode": 3})"), "''");
  says(with_pooling("{}"), "missing");
  says(with_pooling("[]"), "missing");
  says(with_pooling("{"), "1_Pooling");
  says(with_pooling(R"({"pooling_mode_mean_tokens": "yes"})"), "pooling_mode_mean_tokens");
  says(with_pooling(R"({"pooling_mode": "mean", "include_prompt": false})"), "include_prompt");
  const std::string pooling = module_text("Pooling", "1_Pooling");
  says(with_modules("{}"), "modules.json");
  says(with_modules("["), "modules.json");
  says(with_modules("[3]"), "Transformer");
  says(with_modules("[]"), "no module Pooling");
  says(with_modules("[" + module_text("LogitScore", "") + "]"), "'LogitScore' before Pooling");
  says(with_modules("[" + pooling + "," + pooling + "]"), "'Pooling' after Pooling");
  says(with_modules("[" + pooling + "," + module_text("Dense", "2_Dense") + "]"), "GELU");
  says(with_modules("[" + pooling + "," + module_text("Dense", "3_Dense") + "]"), "3_Dense");
  for (const std::string_view path : {"../x", "/x", "a/../../x"}) {
    says(with_modules("[" + module_text("Pooling", path) + "]"), "a folder's name");
  }
}

}  // namespace
}  // namespace saker::load::importers

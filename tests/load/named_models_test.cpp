// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/named_models.h"

#include "saker/base/error.h"
#include "saker/load/files/model_dir.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace saker::load {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using ::testing::IsEmpty;

class NamedModelsTest : public ::testing::Test {
 protected:
  NamedModelsTest() { setenv("SAKER_MODELS", store().c_str(), 1); }

  ~NamedModelsTest() override { unsetenv("SAKER_MODELS"); }

  fs::path store() const { return dir_.path() / "store"; }

  // A model with one file that holds `text`.
  fs::path make(const std::string& name, const std::string& text) const {
    const NewModel model;
    fs::create_directories(model.path());
    dir_.write(fs::relative(model.path() / "config.json", dir_.path()).string(), text);
    return model.place(name);
  }

  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(store())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  testing::TemporaryDir dir_;
};

TEST(StoredNames, ArePlain) {
  EXPECT_EQ(parse_stored_name("qwen3"), "qwen3");
  EXPECT_EQ(parse_stored_name("Qwen3-4B_x.1:q4"), "Qwen3-4B_x.1:q4");
  EXPECT_EQ(parse_stored_name("qwen3:latest"), "qwen3");
  const std::string with_nul("a\0b", 3);
  for (const std::string& name :
       {std::string(),
        std::string("."),
        std::string(".."),
        std::string(".hidden"),
        std::string("-x"),
        std::string("a/b"),
        std::string("../a"),
        std::string("a b"),
        std::string("a:"),
        std::string(":b"),
        std::string("a:b:c"),
        std::string("a:.b"),
        std::string("a\n"),
        std::string("é"),
        with_nul,
        std::string(97, 'a'),
        std::string("a@b"),
        std::string(":latest")}) {
    EXPECT_EQ(parse_stored_name(name), std::nullopt) << name;
  }
}

TEST_F(NamedModelsTest, AreFoundListedReplacedAndRemoved) {
  EXPECT_EQ(find_named_model("one"), std::nullopt);
  EXPECT_THAT(named_models(), IsEmpty());
  make("one", "{}");
  make("two:q4", "{}");
  EXPECT_EQ(find_named_model("one:latest"), store() / "one");
  EXPECT_EQ(resolve_model("two:q4"), store() / "two:q4");
  ASSERT_EQ(named_models().size(), 2U);
  EXPECT_EQ(named_models()[0].name, "one");
  EXPECT_EQ(named_models()[0].bytes, 2U);
  EXPECT_GT(named_models()[0].modified, 0);
  make("one", "[1]");
  EXPECT_EQ(named_models()[0].bytes, 3U);
  remove_named_model("one");
  EXPECT_EQ(find_named_model("one"), std::nullopt);
  EXPECT_EQ(named_models().size(), 1U);
  expect_error(ErrorCode::kNotFound, {"'one'"}, [] { remove_named_model("one"); });
  EXPECT_EQ(entries().size(), 2U);  // The other model and the lock.
}

TEST_F(NamedModelsTest, AppearWholeOrNotAtAll) {
  {
    const NewModel model;
    fs::create_directories(model.path());
    EXPECT_THAT(named_models(), IsEmpty());
  }
  EXPECT_EQ(entries(), std::vector<std::string>{".lock"});
}

TEST_F(NamedModelsTest, SweepWhatNobodyWorksOn) {
  fs::create_directories(store() / ".7-1.tmp/model");
  fs::create_directories(store() / ".other");
  const NewModel first;
  EXPECT_FALSE(fs::exists(store() / ".7-1.tmp"));
  EXPECT_TRUE(fs::exists(store() / ".other"));
  fs::create_directories(first.path());
  make("one", "{}");
  EXPECT_TRUE(fs::exists(first.path()));
}

TEST_F(NamedModelsTest, KeepTheirSettings) {
  const fs::path model = make("one", "{}");
  EXPECT_TRUE(read_settings(model).options.empty());
  ModelSettings settings{.from = "x", .system = "Be brief."};
  settings.messages = {{{"role", "user"}, {"content", "hi"}}};
  settings.options = {{"temp", 0.5}};
  settings.has_adapter = true;
  write_settings(model, settings);
  const ModelSettings read = read_settings(model);
  EXPECT_EQ(read.from, "x");
  EXPECT_EQ(read.system, "Be brief.");
  EXPECT_EQ(read.messages, settings.messages);
  EXPECT_EQ(read.options, settings.options);
  EXPECT_TRUE(read.has_adapter);
  // Elsewhere the file says nothing.
  fs::copy(model, dir_.path() / "elsewhere");
  EXPECT_EQ(read_settings(dir_.path() / "elsewhere").system, "");
  for (const char* broken :
       {"", "[]", R"({"options": 7})", R"({"messages": [1]})", R"({"system": 1})"}) {
    dir_.write("store/one/saker.json", broken);
    expect_error(ErrorCode::kCorruptData, {}, [&] { read_settings(model); });
    EXPECT_EQ(named_models()[0].from, "");
  }
}

}  // namespace
}  // namespace saker::load

// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/model_dir.h"

#include "saker/base/error.h"

#include "tests/support/environment.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace saker::load {
namespace {

using testing::expect_error;
using testing::HubEnvironment;
using testing::TemporaryDir;

class HubCacheTest : public ::testing::Test {
 protected:
  std::filesystem::path add_snapshot(const std::string& repo, const std::string& revision) {
    cache_.write(repo + "/snapshots/" + revision + "/config.json", "{}");
    return cache_.path() / repo / "snapshots" / revision;
  }

  TemporaryDir cache_;
  HubEnvironment environment_{{{"HF_HUB_CACHE", cache_.path().native()}}};
};

TEST(OpenModelDir, ListsWhatIsThere) {
  const TemporaryDir dir;
  dir.write("config.json", "{}");
  dir.write("tokenizer.json", "{}");
  const ModelDir files = open_model_dir(dir.path());
  EXPECT_EQ(files.path, dir.path());
  EXPECT_EQ(files.config, dir.path() / "config.json");
  EXPECT_EQ(files.tokenizer, dir.path() / "tokenizer.json");
  EXPECT_FALSE(files.generation_config);
  EXPECT_FALSE(files.tokenizer_config);
  EXPECT_FALSE(files.chat_template);
  expect_error(ErrorCode::kNotFound, {"none", "not a folder"}, [&] {
    open_model_dir(dir.path() / "none");
  });
}

TEST_F(HubCacheTest, FindsTheSnapshotOfMain) {
  add_snapshot("models--org--name", "0123abcd");
  const auto newer = add_snapshot("models--org--name", "4567ef00");
  cache_.write("models--org--name/refs/main", "4567ef00");
  EXPECT_EQ(resolve_model("org/name"), newer);
  cache_.write("models--org--name/refs/main", "4567ef00\n");
  EXPECT_EQ(resolve_model("org/name"), newer);
}

TEST_F(HubCacheTest, FindsTheOnlySnapshot) {
  const auto only = add_snapshot("models--org--na.me-2_b", "0123abcd");
  EXPECT_EQ(resolve_model("org/na.me-2_b"), only);
  const auto old_style = add_snapshot("models--gpt2", "0123abcd");
  EXPECT_EQ(resolve_model("gpt2"), old_style);
  EXPECT_EQ(resolve_model("gpt2@0123abcd"), old_style);
  expect_error(ErrorCode::kNotFound, {"gpt2@other"}, [] { resolve_model("gpt2@other"); });
}

TEST_F(HubCacheTest, FindsAGgufFile) {
  const auto snapshot = add_snapshot("models--org--gguf", "a");
  const std::string folder = "models--org--gguf/snapshots/a/";
  cache_.write(folder + "x-Q8_0.gguf", "x");
  EXPECT_EQ(resolve_model("org/gguf"), snapshot / "x-Q8_0.gguf");
  cache_.write(folder + "sub/x-IQ1_S-00001-of-00002.gguf", "x");
  cache_.write(folder + "sub/x-IQ1_S-00002-of-00002.gguf", "x");
  EXPECT_EQ(resolve_model("org/gguf:iq1_s"), snapshot / "sub/x-IQ1_S-00001-of-00002.gguf");
  EXPECT_EQ(resolve_model("hf.co/org/gguf:x-Q8_0.gguf@a"), snapshot / "x-Q8_0.gguf");
  expect_error(ErrorCode::kNotFound, {"'org/gguf:F16'"}, [] { resolve_model("org/gguf:F16"); });
  // Safetensors come first where nothing else is said.
  cache_.write(folder + "model.safetensors", "x");
  EXPECT_EQ(resolve_model("org/gguf"), snapshot);
  EXPECT_EQ(resolve_model("org/gguf:Q8_0"), snapshot / "x-Q8_0.gguf");
}

TEST_F(HubCacheTest, SaysWhatToDoOtherwise) {
  expect_error(
      ErrorCode::kNotFound,
      {"'org/none'", cache_.path().native(), "has to be pulled first"},
      [] { resolve_model("org/none"); }
  );
  add_snapshot("models--org--two", "a");
  add_snapshot("models--org--two", "b");
  expect_error(ErrorCode::kNotFound, {"'org/two'"}, [] { resolve_model("org/two"); });
}

TEST_F(HubCacheTest, NamesStayInTheCache) {
  add_snapshot("models--org--name", "a");
  add_snapshot("models--org--name", "b");
  cache_.write("secret/config.json", "{}");
  cache_.write("models--org--name/refs/main", "../../secret");
  expect_error(ErrorCode::kNotFound, {"'org/name'"}, [] { resolve_model("org/name"); });
  for (const std::string_view name :
       {"../x", "a/../b", "a/b/c", "/none/at/all", "a/", "/a", "a//b", "-a/b", "a b/c", "\xff/x"}) {
    SCOPED_TRACE(name);
    expect_error(ErrorCode::kNotFound, {"no Hugging Face repo id"}, [&] { resolve_model(name); });
  }
  EXPECT_THROW(resolve_model(std::string(100'000, 'a')), Error);
}

TEST_F(HubCacheTest, FoldersComeFirst) {
  const TemporaryDir dir;
  EXPECT_EQ(resolve_model(dir.path().native()), dir.path());
  const auto file = dir.write("file", "x");
  expect_error(ErrorCode::kInvalidArgument, {"is a file"}, [&] { resolve_model(file.native()); });
  expect_error(ErrorCode::kInvalidArgument, {"NUL"}, [&] {
    resolve_model(std::string_view("a\0b", 3));
  });
}

}  // namespace
}  // namespace saker::load

// SPDX-License-Identifier: Apache-2.0
#include "saker/load/model_dir.h"

#include "saker/base/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace saker::load {
namespace {

using testing::expect_error;
using testing::TemporaryDir;

// Sets the variables that name the hub cache, and puts the old values back.
class HubEnvironment {
 public:
  explicit HubEnvironment(const std::map<std::string, std::string>& values) {
    for (const char* name : {"HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME"}) {
      const char* old = std::getenv(name);
      old_[name] = old == nullptr ? std::nullopt : std::optional<std::string>(old);
      const auto value = values.find(name);
      set(name, value == values.end() ? std::nullopt : std::optional(value->second));
    }
  }

  HubEnvironment(const HubEnvironment&) = delete;
  HubEnvironment& operator=(const HubEnvironment&) = delete;

  ~HubEnvironment() {
    for (const auto& [name, value] : old_) {
      set(name, value);
    }
  }

 private:
  static void set(const std::string& name, const std::optional<std::string>& value) {
    if (value) {
      ::setenv(name.c_str(), value->c_str(), 1);
    } else {
      ::unsetenv(name.c_str());
    }
  }

  std::map<std::string, std::optional<std::string>> old_;
};

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

TEST(HubCacheDir, FollowsTheEnvironment) {
  {
    const HubEnvironment set({{"HF_HUB_CACHE", "/a"}, {"HF_HOME", "/b"}, {"HOME", "/d"}});
    EXPECT_EQ(hub_cache_dir(), "/a");
  }
  {
    const HubEnvironment set({{"HF_HOME", "/b"}, {"XDG_CACHE_HOME", "/c"}, {"HOME", "/d"}});
    EXPECT_EQ(hub_cache_dir(), "/b/hub");
  }
  {
    const HubEnvironment set({{"XDG_CACHE_HOME", "/c"}, {"HOME", "/d"}});
    EXPECT_EQ(hub_cache_dir(), "/c/huggingface/hub");
  }
  {
    const HubEnvironment set({{"HF_HUB_CACHE", ""}, {"HOME", "/d"}});
    EXPECT_EQ(hub_cache_dir(), "/d/.cache/huggingface/hub");
  }
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
}

TEST_F(HubCacheTest, SaysWhatToDoOtherwise) {
  expect_error(
      ErrorCode::kNotFound,
      {"'org/none'", cache_.path().native(), "hf download org/none"},
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

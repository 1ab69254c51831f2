// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/model_name.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace saker::hub {
namespace {

TEST(ModelName, RepoAndRevision) {
  EXPECT_EQ(parse_model_name("org/name"), (ModelName{"org/name", ""}));
  EXPECT_EQ(parse_model_name("gpt2"), (ModelName{"gpt2", ""}));
  EXPECT_EQ(parse_model_name("org/na.me-2_b@v1.0"), (ModelName{"org/na.me-2_b", "v1.0"}));
  EXPECT_EQ(parse_model_name("org/name@refs/pr/1"), (ModelName{"org/name", "refs/pr/1"}));
  EXPECT_EQ(to_string({"org/name", "v1"}), "org/name@v1");
  EXPECT_EQ(to_string({"org/name", ""}), "org/name");
}

TEST(ModelName, RefusesWhatLeadsElsewhere) {
  for (const std::string_view text :
       {"",      "/",      "a/b/c",    "../x",       "a/..",     "a/../b",  "a//b",
        "/a",    "a/",     "-a/b",     "a/-b",       "a b/c",    "\xff/x",  "a--b/c",
        "a/b@",  "a/b@..", "a/b@/x",   "a/b@x/../y", "a/b@x//y", "a/b@-x",  "a/b@x\ny",
        "@main", "a/b@.",  "a/b@x..y", "a\\b",       "a/b@x\\y", "a/b@\xff"}) {
    EXPECT_FALSE(parse_model_name(text)) << text;
  }
  EXPECT_FALSE(parse_model_name(std::string(97, 'a')));
  EXPECT_FALSE(parse_model_name("a/b@" + std::string(256, 'a')));
  EXPECT_FALSE(parse_model_name(std::string_view("a\0b", 3)));
}

TEST(ModelName, Commits) {
  EXPECT_TRUE(is_commit(std::string(40, 'a')));
  EXPECT_FALSE(is_commit(std::string(40, 'A')));
  EXPECT_FALSE(is_commit(std::string(39, 'a')));
  EXPECT_TRUE(is_digest(std::string(64, '0')));
  EXPECT_FALSE(is_digest(std::string(63, '0') + "/"));
}

TEST(ModelName, FilePaths) {
  for (const std::string_view path :
       {"config.json", "draft/model.safetensors", "a b/ü.txt", ".x"}) {
    EXPECT_TRUE(is_file_path(path)) << path;
  }
  for (const std::string_view path :
       {"",
        ".",
        "..",
        "/a",
        "a/",
        "a//b",
        "../a",
        "a/../b",
        "a/.",
        "a\nb",
        "a\\b",
        "a\x7f",
        "a\u0085b",
        "a\u009b31m",
        "\xff"}) {
    EXPECT_FALSE(is_file_path(path)) << path;
  }
  EXPECT_FALSE(is_file_path(std::string(256, 'a')));
  EXPECT_FALSE(is_file_path(std::string_view("a\0b", 3)));
  std::string deep = "a";
  while (deep.size() <= 1024) {
    deep += "/a";
  }
  EXPECT_FALSE(is_file_path(deep));
}

}  // namespace
}  // namespace saker::hub

// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/model_name.h"

#include "tests/support/environment.h"
#include <gtest/gtest.h>

#include <map>
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

TEST(ModelName, GgufFiles) {
  EXPECT_EQ(parse_model_name("org/name:Q4_K_M"), (ModelName{"org/name", "", "Q4_K_M"}));
  const ModelName both{"org/name", "v1", "sub/x-Q8_0.gguf"};
  EXPECT_EQ(parse_model_name("org/name:sub/x-Q8_0.gguf@v1"), both);
  EXPECT_EQ(parse_model_name("org/name@v1:sub/x-Q8_0.gguf"), both);
  EXPECT_EQ(to_string(both), "org/name:sub/x-Q8_0.gguf@v1");
  // Names of ollama's library have no owner.
  for (const std::string_view text :
       {"qwen3:0.6b",
        "org/name:",
        "org/name:@v1",
        "org/name:../x",
        "org/name:a:b",
        "org/name:/x",
        "org/name:-x",
        "org/name:a@",
        "org/name@v1:a@v2",
        "org/name:a\nb",
        "org/name:a//b"}) {
    EXPECT_FALSE(parse_model_name(text)) << text;
  }
}

TEST(ModelName, Addresses) {
  const testing::HubEnvironment set(std::map<std::string, std::string>{});
  for (const std::string_view text :
       {"hf.co/org/name",
        "huggingface.co/org/name",
        "https://huggingface.co/org/name",
        "http://hf.co/org/name/",
        "HTTPS://HuggingFace.co/org/name?library=mlx#readme",
        "https://www.huggingface.co/org/name",
        "hf://org/name"}) {
    EXPECT_EQ(parse_model_name(text), (ModelName{"org/name"})) << text;
  }
  EXPECT_EQ(parse_model_name("hf.co/org/name:Q8_0"), (ModelName{"org/name", "", "Q8_0"}));
  EXPECT_EQ(parse_model_name("hf.co/org/name@v1"), (ModelName{"org/name", "v1"}));
  EXPECT_EQ(
      parse_model_name("https://huggingface.co/org/name/tree/refs%2Fpr%2F1"),
      (ModelName{"org/name", "refs/pr/1"})
  );
  for (const std::string_view kind : {"blob", "resolve", "raw"}) {
    const std::string page = "https://huggingface.co/org/name/" + std::string(kind) + "/main/";
    EXPECT_EQ(
        parse_model_name(page + "a/x%20y-Q8_0.gguf?download=true"),
        (ModelName{"org/name", "main", "a/x y-Q8_0.gguf"})
    );
    EXPECT_EQ(parse_model_name(page + "config.json"), (ModelName{"org/name", "main"}));
    EXPECT_FALSE(parse_model_name(page + "..%2F..%2Fx.gguf"));
  }
}

TEST(ModelName, OtherAddresses) {
  const testing::HubEnvironment set({{"HF_ENDPOINT", std::string("https://hub.example/mirror")}});
  EXPECT_EQ(parse_model_name("https://hub.example/mirror/org/name"), (ModelName{"org/name"}));
  for (const std::string_view text :
       {"https://hub.example/org/name",
        "https://example.com/org/name",
        "hf.co/models",
        "hf.co/",
        "https://huggingface.co/datasets/org/name",
        "https://huggingface.co/org/name/discussions",
        "https://huggingface.co/org/name/tree/main/sub",
        "https://huggingface.co/../name",
        "https://huggingface.co/org/name/tree/..",
        "https://huggingface.co/org/%2e%2e",
        "https://user@huggingface.co/org/name",
        "ftp://huggingface.co/org/name"}) {
    EXPECT_FALSE(parse_model_name(text)) << text;
  }
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

// SPDX-License-Identifier: Apache-2.0
#include "saker/text/generation_config.h"

#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace saker::text {
namespace {

TEST(GenerationConfig, NeedsNoFile) {
  const testing::TemporaryDir dir;
  const auto config = read_generation_config(dir.path());
  EXPECT_TRUE(config.values.empty());
  EXPECT_TRUE(config.warnings.empty());
}

TEST(GenerationConfig, HoldsWhatTheFileSays) {
  const testing::TemporaryDir dir;
  dir.write("generation_config.json", R"({"eos_token_id": [1, null, 2], "top_k": 3})");
  const auto config = read_generation_config(dir.path());
  EXPECT_EQ(config.values, (Json{{"eos_token_id", {1, nullptr, 2}}, {"top_k", 3}}));
  EXPECT_TRUE(config.warnings.empty());
}

TEST(GenerationConfig, WarnsOfABrokenFile) {
  const testing::TemporaryDir dir;
  for (const char* text :
       {"",
        "[]",
        "7",
        R"({"temperature": 0.15,})",
        R"({"do_sample": true. "top_k": 1})",
        "\xff",
        "{"}) {
    dir.write("generation_config.json", text);
    const auto config = read_generation_config(dir.path());
    EXPECT_TRUE(config.values.empty()) << text;
    ASSERT_EQ(config.warnings.size(), 1U) << text;
    EXPECT_NE(config.warnings[0].find("generation_config.json"), std::string::npos);
  }
  std::filesystem::remove(dir.path() / "generation_config.json");
  std::filesystem::create_directory(dir.path() / "generation_config.json");
  EXPECT_EQ(read_generation_config(dir.path()).warnings.size(), 1U);
}

TEST(GenerationConfig, LeavesOutEndsThatAreNoIds) {
  const testing::TemporaryDir dir;
  for (const char* eos :
       {"-1", "1.5", "\"</s>\"", "[1, -2]", "4294967296", "true", "[[1]]", "{}"}) {
    dir.write(
        "generation_config.json", std::string(R"({"top_k": 3, "eos_token_id": )") + eos + "}"
    );
    const auto config = read_generation_config(dir.path());
    EXPECT_EQ(config.values, (Json{{"top_k", 3}})) << eos;
    ASSERT_EQ(config.warnings.size(), 1U) << eos;
    EXPECT_NE(config.warnings[0].find("eos_token_id"), std::string::npos);
  }
}

}  // namespace
}  // namespace saker::text

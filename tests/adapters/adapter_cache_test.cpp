// SPDX-License-Identifier: Apache-2.0
#include "saker/adapters/adapter_cache.h"

#include "saker/base/json/json.h"

#include "tests/support/expect_error.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temporary_dir.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): setenv is POSIX's.

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace saker::adapters {
namespace {

namespace fs = std::filesystem;

using saker::testing::expect_error;
using saker::testing::TemporaryDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Of Python's hashlib.blake2b(..., digest_size=16) over the weights, and over both files.
constexpr std::string_view kSwayKey = "50db0ac1515e8714d6b01252ef266f4e";
constexpr std::string_view kSakerKey = "86a36a9c549c9a4934184720cda86f59";

class Cache : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) {
      before_ = before;
    }
    ::setenv("XDG_CACHE_HOME", (home_.path() / "cache").c_str(), 1);
    use("peft_llama");
  }

  void TearDown() override {
    if (before_) {
      ::setenv("XDG_CACHE_HOME", before_->c_str(), 1);
    } else {
      ::unsetenv("XDG_CACHE_HOME");
    }
  }

  // The adapter is a copy of this one.
  void use(std::string_view name) const {
    const auto golden = fs::path(SAKER_SOURCE_DIR) / "tests/golden/adapters" / name;
    fs::remove_all(adapter());
    fs::create_directory(adapter());
    for (const auto file : {kPeftWeights, kAdapterConfig}) {
      fs::copy_file(golden / file, adapter() / file);
    }
  }

  fs::path adapter() const { return home_.path() / "adapter"; }

  fs::path saker_dir() const { return home_.path() / "cache/saker/adapters"; }

  fs::path sway_dir() const { return home_.path() / "cache/dlm-sway/mlx-converted"; }

  void set_alpha(double alpha) const {
    Json config = read_json_file(adapter() / kAdapterConfig);
    config["lora_alpha"] = alpha;
    home_.write("adapter/adapter_config.json", config.dump());
  }

  static double scale_in(const fs::path& dir) {
    return read_json_file(dir / kAdapterConfig)["lora_parameters"]["scale"].get<double>();
  }

  TemporaryDir home_;
  std::optional<std::string> before_;
};

TEST_F(Cache, ConvertsOnce) {
  const auto first = cached_adapter(adapter(), AdapterCache::kSaker);
  EXPECT_EQ(first.dir, saker_dir() / kSakerKey);
  EXPECT_FALSE(first.was_there);
  EXPECT_EQ(first.report.tensors, 28U);
  const auto written = fs::last_write_time(first.dir / kMlxWeights);
  const auto again = cached_adapter(adapter(), AdapterCache::kSaker);
  EXPECT_TRUE(again.was_there);
  EXPECT_EQ(again.dir, first.dir);
  EXPECT_EQ(again.report.tensors, first.report.tensors);
  EXPECT_EQ(again.report.converted, first.report.converted);
  EXPECT_EQ(fs::last_write_time(first.dir / kMlxWeights), written);
  EXPECT_EQ(read_adapter(first.dir).modules.size(), 14U);
}

TEST_F(Cache, TheConfigurationIsPartOfTheKey) {
  const auto first = cached_adapter(adapter(), AdapterCache::kSaker);
  set_alpha(60);
  const auto other = cached_adapter(adapter(), AdapterCache::kSaker);
  EXPECT_FALSE(other.was_there);
  EXPECT_NE(other.dir, first.dir);
  EXPECT_EQ(scale_in(first.dir), 1.5);
  EXPECT_EQ(scale_in(other.dir), 15.0);
}

// dlm-sway's key does not hold the configuration.
TEST_F(Cache, OfSwayIsComparedWithTheConfiguration) {
  const auto first = cached_adapter(adapter(), AdapterCache::kSway);
  EXPECT_EQ(first.dir, sway_dir() / kSwayKey);
  EXPECT_FALSE(first.was_there);
  EXPECT_EQ(std::distance(fs::directory_iterator(first.dir), {}), 2);
  EXPECT_TRUE(cached_adapter(adapter(), AdapterCache::kSway).was_there);
  set_alpha(60);
  const auto other = cached_adapter(adapter(), AdapterCache::kSway);
  EXPECT_EQ(other.dir, first.dir);
  EXPECT_FALSE(other.was_there);
  EXPECT_EQ(scale_in(other.dir), 15.0);
}

TEST_F(Cache, WhatIsIncompleteOrBrokenIsWrittenAgain) {
  for (const auto cache : {AdapterCache::kSaker, AdapterCache::kSway}) {
    const auto dir = cached_adapter(adapter(), cache).dir;
    fs::remove(dir / kAdapterConfig);
    EXPECT_FALSE(cached_adapter(adapter(), cache).was_there);
    EXPECT_TRUE(cached_adapter(adapter(), cache).was_there);
    for (const int bytes : {0, 100, static_cast<int>(fs::file_size(dir / kMlxWeights)) - 1}) {
      fs::resize_file(dir / kMlxWeights, static_cast<std::uintmax_t>(bytes));
      EXPECT_FALSE(cached_adapter(adapter(), cache).was_there) << bytes;
    }
  }
  home_.write(
      "cache/saker/adapters/" + std::string(kSakerKey) + "/conversion.json", "{\"form\":0}"
  );
  EXPECT_FALSE(cached_adapter(adapter(), AdapterCache::kSaker).was_there);
}

TEST_F(Cache, OthersArePassedThroughOrRefused) {
  const auto mlx = fs::path(SAKER_SOURCE_DIR) / "tests/golden/adapters/mlx_lora";
  const auto passed = cached_adapter(mlx, AdapterCache::kSaker);
  EXPECT_EQ(passed.dir, mlx);
  EXPECT_TRUE(passed.was_there);
  fs::remove(adapter() / kAdapterConfig);
  expect_error(ErrorCode::kNotFound, {"adapter_config.json"}, [&] {
    cached_adapter(adapter(), AdapterCache::kSaker);
  });
  fs::remove(adapter() / kPeftWeights);
  expect_error(ErrorCode::kNotFound, {"no adapter"}, [&] {
    cached_adapter(adapter(), AdapterCache::kSaker);
  });
  use("peft_bias_all");
  home_.write("adapter/adapter_config.json", R"({"peft_type": "IA3"})");
  expect_error(ErrorCode::kUnsupported, {"IA3"}, [&] {
    cached_adapter(adapter(), AdapterCache::kSaker);
  });
  home_.write("file", "");
  ::setenv("XDG_CACHE_HOME", (home_.path() / "file").c_str(), 1);
  use("peft_llama");
  expect_error(ErrorCode::kNotFound, {"saker/adapters"}, [&] {
    cached_adapter(adapter(), AdapterCache::kSaker);
  });
}

TEST_F(Cache, KeepsWhatWasSkipped) {
  use("peft_saved");
  const auto first = cached_adapter(adapter(), AdapterCache::kSaker);
  const auto again = cached_adapter(adapter(), AdapterCache::kSaker);
  EXPECT_TRUE(again.was_there);
  EXPECT_THAT(again.report.skipped, ElementsAre(HasSubstr("embed_tokens"), HasSubstr("lm_head")));
}

TEST_F(Cache, SeveralAtOnceConvertOnce) {
  constexpr int kThreads = 4;
  std::vector<CachedAdapter> results(kThreads);
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        results[static_cast<std::size_t>(i)] = cached_adapter(adapter(), AdapterCache::kSaker);
      });
    }
  }
  int written = 0;
  for (const CachedAdapter& result : results) {
    written += result.was_there ? 0 : 1;
  }
  EXPECT_EQ(written, 1);
  // The folder and the lock.
  EXPECT_EQ(std::distance(fs::directory_iterator(saker_dir()), {}), 2);
}

TEST_F(Cache, AFileOfLlamaCppIsConvertedOnce) {
  const std::vector<float> ones(4, 1.0F);
  const std::string_view bytes(reinterpret_cast<const char*>(ones.data()), sizeof(float) * 4);
  saker::testing::GgufBuilder builder;
  builder.string("general.architecture", "qwen2").string("general.type", "adapter");
  builder.string("adapter.type", "lora").number("adapter.lora.alpha", 6.0F);
  builder.tensor("blk.0.ffn_up.weight.lora_a", {2, 2}, 0, bytes);
  builder.tensor("blk.0.ffn_up.weight.lora_b", {2, 2}, 0, bytes);
  const TemporaryDir dir;
  dir.write("a.gguf", builder.file());
  const auto first = cached_adapter(dir.path() / "a.gguf", AdapterCache::kSaker);
  EXPECT_FALSE(first.was_there);
  EXPECT_THAT(first.report.converted, ElementsAre("model.layers.0.mlp.up_proj"));
  const auto second = cached_adapter(dir.path() / "a.gguf", AdapterCache::kSaker);
  EXPECT_TRUE(second.was_there);
  EXPECT_EQ(second.dir, first.dir);
  EXPECT_EQ(cached_adapter(dir.path(), AdapterCache::kSaker).dir, first.dir);
}

}  // namespace
}  // namespace saker::adapters

// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/missing_model.h"

#include "tests/support/environment.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>

namespace saker::hub {
namespace {

using testing::HubEnvironment;
using testing::TemporaryDir;

TEST(MissingModel, IsWhatANameLeadsToNowhere) {
  const TemporaryDir cache;
  const HubEnvironment set({{"HF_HUB_CACHE", cache.path().string()}});
  EXPECT_EQ(missing_model("org/name"), (ModelName{"org/name", ""}));
  EXPECT_EQ(missing_model("org/name@v1"), (ModelName{"org/name", "v1"}));
  EXPECT_EQ(missing_model(cache.path().string()), std::nullopt);
  EXPECT_EQ(missing_model("/nowhere/at all"), std::nullopt);
  EXPECT_EQ(missing_model(""), std::nullopt);
}

// Where any other file lies in the cache, the description is still to come.
TEST(MissingModel, WhatIsCachedHasADescription) {
  for (const std::string file : {"config.json", "adapter_config.json", "model.safetensors"}) {
    const TemporaryDir cache;
    const HubEnvironment set({{"HF_HUB_CACHE", cache.path().string()}});
    const std::string commit(40, 'c');
    cache.write("models--org--name/refs/main", commit);
    cache.write("models--org--name/snapshots/" + commit + "/" + file, "{}");
    EXPECT_EQ(missing_model("org/name").has_value(), file == "model.safetensors");
    EXPECT_TRUE(missing_model("org/name@other").has_value());
  }
}

// A GGUF model is there when all its parts are, and links to them lead somewhere.
TEST(MissingModel, GgufModels) {
  const TemporaryDir cache;
  const HubEnvironment set({{"HF_HUB_CACHE", cache.path().string()}});
  const std::string commit(40, 'c');
  const std::string snapshot = "models--org--name/snapshots/" + commit + "/";
  cache.write("models--org--name/refs/main", commit);
  cache.write(snapshot + "x-Q8_0.gguf", "x");
  cache.write(snapshot + "x-F16-00001-of-00002.gguf", "x");
  std::filesystem::create_symlink(
      "nowhere", cache.path() / (snapshot + "x-F16-00002-of-00002.gguf")
  );
  EXPECT_EQ(missing_model("org/name"), std::nullopt);
  EXPECT_EQ(missing_model("org/name:q8_0"), std::nullopt);
  EXPECT_EQ(missing_model("hf.co/org/name:Q8_0@main"), std::nullopt);
  EXPECT_EQ(missing_model("org/name:Q4_K_M"), (ModelName{"org/name", "", "Q4_K_M"}));
  EXPECT_EQ(missing_model("org/name:F16"), (ModelName{"org/name", "", "F16"}));
}

}  // namespace
}  // namespace saker::hub

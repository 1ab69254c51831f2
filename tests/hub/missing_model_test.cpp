// SPDX-License-Identifier: Apache-2.0
#include "saker/hub/missing_model.h"

#include "tests/support/environment.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace saker::hub

// SPDX-License-Identifier: Apache-2.0
#include "saker/load/model_identity.h"

#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <string>

namespace saker::load {
namespace {

TEST(ModelIdentity, FollowsAllFilesThatSayWhatWeightsMean) {
  const testing::TemporaryDir dir;
  dir.write("model.safetensors", "weights");
  dir.write("config.json", "{}");
  std::string before = model_identity(dir.path());
  EXPECT_EQ(model_identity(dir.path()), before);
  for (const char* name : {"model.safetensors", "config.json", "hf_quant_config.json"}) {
    dir.write(name, "changed");
    const std::string after = model_identity(dir.path());
    EXPECT_NE(after, before) << name;
    before = after;
  }
  dir.write("tokenizer.json", "{}");
  EXPECT_EQ(model_identity(dir.path()), before);
}

}  // namespace
}  // namespace saker::load

// SPDX-License-Identifier: Apache-2.0
// Tensors that an architecture never reads are no news, see models::TensorRules.
#include "saker/base/json/json.h"
#include "saker/load/checkpoint.h"

#include "tests/load/golden_tensors.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <string>

namespace saker::load {
namespace {

TEST(UnreadTensors, AreNoNewsInAModelWhoseLayersShareRows) {
  const testing::TemporaryDir dir;
  dir.write("config.json", read_json_file(golden_dir("gemma4_small") / "config.json").dump());
  auto tensors = golden_tensors("gemma4_small");
  const auto add = [&](const std::string& name) {
    tensors.push_back(testing::f32_tensor(name, {1}, {1}));
  };
  const auto warnings = [&] {
    dir.write("model.safetensors", testing::safetensors_file(tensors));
    return load_checkpoint(dir.path()).warnings;
  };
  for (const std::string part : {"k_proj.weight", "v_proj.weight", "k_norm.weight"}) {
    add("model.layers.5.self_attn." + part);
  }
  add("model.layers.0.mlp.up_proj.input_max");
  EXPECT_TRUE(warnings().empty());
  add("model.layers.2.self_attn.k_proj.extra");
  EXPECT_EQ(warnings().size(), 1U);
}

}  // namespace
}  // namespace saker::load

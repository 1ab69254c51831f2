// SPDX-License-Identifier: Apache-2.0
#include "saker/base/numbered_name.h"

#include <gtest/gtest.h>

#include <string_view>

namespace saker {
namespace {

TEST(NumberedName, TakesNumberAndRest) {
  const auto name = numbered_name("layers.12.mlp.up_proj", "layers.");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->number, 12);
  EXPECT_EQ(name->rest, "mlp.up_proj");
  EXPECT_EQ(numbered_name("blk.0.q", "blk.")->number, 0);
}

TEST(NumberedName, RefusesOtherForms) {
  for (const std::string_view name :
       {"",
        "layers.",
        "layers.1",
        "layers.1.",
        "layers..x",
        "layers.x.y",
        "layers.-1.x",
        "layers.01.x",
        "layers.1x.y",
        "layers.99999999999999999999.x",
        "blk.1.x"}) {
    EXPECT_FALSE(numbered_name(name, "layers.")) << name;
  }
}

}  // namespace
}  // namespace saker

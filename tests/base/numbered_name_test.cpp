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

TEST(PartName, SaysWhichPartOfHowMany) {
  const auto name = part_name("a-b-of-c-00002-of-00013.gguf", ".gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->stem, "a-b-of-c");
  EXPECT_EQ(name->number, 2);
  EXPECT_EQ(name->count, 13);
  EXPECT_EQ(name->sibling(2), "a-b-of-c-00002-of-00013.gguf");
  EXPECT_EQ(name->sibling(13), "a-b-of-c-00013-of-00013.gguf");
  EXPECT_EQ(part_name("m-1-of-2.x", ".x")->sibling(2), "m-2-of-2.x");
}

TEST(PartName, RefusesOtherForms) {
  for (const std::string_view name :
       {"",
        ".gguf",
        "-of-.gguf",
        "-of-3.gguf",
        "1-of-3.gguf",
        "m-1-of-3",
        "m-1-of-3.bin",
        "m-0-of-3.gguf",
        "m-4-of-3.gguf",
        "m-1-of-.gguf",
        "m--of-3.gguf",
        "m-+1-of-3.gguf",
        "m-1-of-100000.gguf",
        "m-1-of-3x.gguf"}) {
    EXPECT_FALSE(part_name(name, ".gguf")) << name;
  }
}

}  // namespace
}  // namespace saker

// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/gguf_recipe.h"

#include "saker/base/error.h"

#include "tests/support/expect_error.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace saker::load::gguf {
namespace {

// A dense model; `columns` of all matrices but ffn_down, which has twice as many.
std::vector<RecipeTensor> tensors_of(int layers, std::int64_t columns, bool has_output) {
  std::vector<RecipeTensor> tensors;
  if (has_output) {
    tensors.push_back({.name = "output.weight", .columns = columns, .rank = 2});
  }
  tensors.push_back({.name = "output_norm.weight", .columns = columns, .rank = 1});
  tensors.push_back({.name = "token_embd.weight", .columns = columns, .rank = 2});
  for (int layer = 0; layer < layers; ++layer) {
    for (const char* name : {"attn_k", "attn_output", "attn_q", "attn_v", "ffn_gate", "ffn_up"}) {
      tensors.push_back(
          {.name = fmt::format("blk.{}.{}.weight", layer, name), .columns = columns, .rank = 2}
      );
    }
    tensors.push_back(
        {.name = fmt::format("blk.{}.ffn_down.weight", layer), .columns = 2 * columns, .rank = 2}
    );
    tensors.push_back(
        {.name = fmt::format("blk.{}.attn_q.bias", layer), .columns = columns, .rank = 1}
    );
  }
  std::ranges::sort(tensors, precedes, &RecipeTensor::name);
  return tensors;
}

class Types {
 public:
  Types(const char* recipe, const RecipeFacts& facts, std::vector<RecipeTensor> tensors)
      : tensors_(std::move(tensors)), types_(tensor_types(find_recipe(recipe), facts, tensors_)) {}

  std::string operator[](const std::string& name) const {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].name == name) {
        return std::string(facts_of(types_[i]).name);
      }
    }
    return "absent";
  }

  // The layers whose tensor has this type.
  std::vector<int> layers(const std::string& tensor, const std::string& type) const {
    std::vector<int> found;
    for (int layer = 0; layer < 1000; ++layer) {
      if ((*this)[fmt::format("blk.{}.{}", layer, tensor)] == type) {
        found.push_back(layer);
      }
    }
    return found;
  }

 private:
  std::vector<RecipeTensor> tensors_;
  std::vector<TensorType> types_;
};

constexpr RecipeFacts kFacts{
    .architecture = "qwen2", .layers = 24, .heads = 14, .kv_heads = 2, .experts = 0
};

TEST(GgufRecipe, ALayerHasMoreBitsWhereTheyHelpMost) {
  const Types types("Q4_K_M", kFacts, tensors_of(24, 1024, true));
  const std::vector<int> more{0, 1, 2, 5, 8, 11, 14, 17, 20, 21, 22, 23};
  EXPECT_EQ(types.layers("attn_v.weight", "Q6_K"), more);
  EXPECT_EQ(types.layers("ffn_down.weight", "Q6_K"), more);
  EXPECT_EQ(types.layers("attn_q.weight", "Q4_K").size(), 24U);
  EXPECT_EQ(types["output.weight"], "Q6_K");
  EXPECT_EQ(types["token_embd.weight"], "Q4_K");
  EXPECT_EQ(types["output_norm.weight"], "F32");
  EXPECT_EQ(types["blk.3.attn_q.bias"], "F32");
}

TEST(GgufRecipe, AnEmbeddingThatIsTheHeadCountsAsTheHead) {
  EXPECT_EQ(Types("Q4_K_M", kFacts, tensors_of(2, 1024, false))["token_embd.weight"], "Q6_K");
  EXPECT_EQ(Types("Q8_0", kFacts, tensors_of(2, 1024, false))["token_embd.weight"], "Q8_0");
}

TEST(GgufRecipe, ColumnsThatAreNoWholeBlocksGetAnotherType) {
  const Types types("Q4_K_M", kFacts, tensors_of(24, 896, true));
  EXPECT_EQ(types["blk.3.attn_q.weight"], "Q5_0");
  EXPECT_EQ(types["blk.0.attn_v.weight"], "Q8_0");
  EXPECT_EQ(types["blk.0.ffn_down.weight"], "Q6_K");  // 1792 columns.
  EXPECT_EQ(types["output.weight"], "Q8_0");
  EXPECT_EQ(Types("Q4_K_M", kFacts, tensors_of(2, 40, true))["blk.1.attn_q.weight"], "F16");
}

TEST(GgufRecipe, OtherRecipesChooseAsTheyAreNamed) {
  const auto dense = tensors_of(32, 1024, true);
  RecipeFacts facts = kFacts;
  facts.layers = 32;
  const Types small("Q4_K_S", facts, dense);
  EXPECT_EQ(small.layers("attn_v.weight", "Q5_K"), (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(small.layers("ffn_down.weight", "Q5_K"), (std::vector{0, 1, 2, 3}));
  const Types three("Q3_K_M", facts, dense);
  EXPECT_EQ(three.layers("attn_v.weight", "Q5_K"), (std::vector{0, 1}));
  EXPECT_EQ(three.layers("ffn_down.weight", "Q5_K"), (std::vector{0, 1}));
  EXPECT_EQ(three["blk.9.attn_v.weight"], "Q4_K");
  EXPECT_EQ(three["blk.9.attn_output.weight"], "Q4_K");
  EXPECT_EQ(three["blk.9.attn_q.weight"], "Q3_K");
  const Types two("Q2_K", facts, dense);
  EXPECT_EQ(two["blk.9.attn_v.weight"], "Q4_K");  // Seven query heads share a key head.
  facts.kv_heads = facts.heads;
  EXPECT_EQ(Types("Q2_K", facts, dense)["blk.9.attn_v.weight"], "Q3_K");
}

TEST(GgufRecipe, AnImportanceMatrixChangesTheFirstLayers) {
  const auto dense = tensors_of(16, 1024, true);
  RecipeFacts facts = kFacts;
  facts.layers = 16;
  EXPECT_EQ(Types("IQ4_XS", facts, dense).layers("ffn_down.weight", "Q5_K").size(), 2U);
  EXPECT_EQ(Types("Q4_0", facts, dense).layers("ffn_down.weight", "Q4_1").size(), 0U);
  facts.importance = true;
  EXPECT_EQ(Types("IQ4_XS", facts, dense).layers("ffn_down.weight", "Q5_K").size(), 0U);
  EXPECT_EQ(Types("Q4_0", facts, dense).layers("ffn_down.weight", "Q4_1").size(), 2U);
}

TEST(GgufRecipe, EightExpertsKeepTheirAttention) {
  RecipeFacts facts = kFacts;
  facts.experts = 8;
  const Types types("Q4_K_M", facts, tensors_of(24, 1024, true));
  EXPECT_EQ(types["blk.4.attn_v.weight"], "Q8_0");
  EXPECT_EQ(types["blk.4.attn_k.weight"], "Q8_0");
  EXPECT_EQ(types["blk.4.attn_output.weight"], "Q5_K");
}

TEST(GgufRecipe, FloatsAreTheSameEverywhere) {
  const Types types("bf16", kFacts, tensors_of(2, 40, true));
  EXPECT_EQ(types["blk.1.attn_v.weight"], "BF16");
  EXPECT_EQ(types["output.weight"], "BF16");
  EXPECT_EQ(types["output_norm.weight"], "F32");
}

TEST(GgufRecipe, LayersAreInNumbersOrder) {
  EXPECT_TRUE(precedes("blk.9.attn_k.weight", "blk.10.attn_k.weight"));
  EXPECT_TRUE(precedes("token_embd.weight", "blk.0.attn_k.weight"));
  EXPECT_FALSE(precedes("blk.0.attn_k.weight", "output.weight"));
}

TEST(GgufRecipe, AnUnknownNameListsTheKnownOnes) {
  testing::expect_error(
      ErrorCode::kInvalidArgument,
      {"'Q4_K_X'", "expected one of F32, BF16, F16"},
      [] { find_recipe("Q4_K_X"); }
  );
}

}  // namespace
}  // namespace saker::load::gguf

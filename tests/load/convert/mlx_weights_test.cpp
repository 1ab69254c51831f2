// SPDX-License-Identifier: Apache-2.0
#include "saker/load/convert/mlx_weights.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"

#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace saker::load {
namespace {

using testing::expect_error;

Tensor tensor(std::vector<std::int64_t> shape, DType dtype = DType::kBFloat16) {
  return {.dtype = dtype, .shape = std::move(shape), .data = nullptr, .release = {}};
}

std::vector<std::string> names(const TensorMap& tensors, const Json& config) {
  std::vector<std::string> result;
  for (const ModelTensor& found : mlx_weights(tensors, config)) {
    result.push_back(found.name);
  }
  return result;
}

using Names = std::vector<std::string>;

TEST(MlxWeightsTest, LeavesOutWhatNobodyReads) {
  const TensorMap tensors = {
      {"lm_head.weight", tensor({4, 2})},
      {"model.embed_tokens.weight", tensor({4, 2})},
      {"model.layers.0.self_attn.rotary_emb.inv_freq", tensor({2})},
  };
  EXPECT_EQ(names(tensors, {{"tie_word_embeddings", true}}), Names{"model.embed_tokens.weight"});
  const Names both = {"lm_head.weight", "model.embed_tokens.weight"};
  EXPECT_EQ(names(tensors, {{"tie_word_embeddings", false}}), both);
  EXPECT_EQ(names(tensors, Json::object()), both);
}

TEST(MlxWeightsTest, LeavesOutWhatGemma4SharesAndSees) {
  TensorMap tensors = {
      {"model.embed_audio.weight", tensor({4, 2})},
      {"audio_tower.weight", tensor({4, 2})},
      {"model.embed_vision.weight", tensor({4, 2})},
      {"vision_embedder.weight", tensor({4, 2})},
      {"model.language_model.layers.0.mlp.up_proj.input_max", tensor({1})},
      {"model.language_model.layers.x.self_attn.k_proj.weight", tensor({4, 2})},
  };
  for (const int layer : {0, 1}) {
    for (const auto* name : {"k_proj", "v_proj", "k_norm", "q_norm"}) {
      const auto scope = "model.language_model.layers." + std::to_string(layer) + ".self_attn.";
      tensors.emplace(scope + name + ".weight", tensor({4, 2}));
    }
  }
  const Json config = {
      {"model_type", "gemma4"},
      {"text_config", {{"num_hidden_layers", 2}, {"num_kv_shared_layers", 1}}},
  };
  const std::string scope = "language_model.model.layers.";
  const Names expected = {
      scope + "0.self_attn.k_norm.weight",
      scope + "0.self_attn.k_proj.weight",
      scope + "0.self_attn.q_norm.weight",
      scope + "0.self_attn.v_proj.weight",
      scope + "1.self_attn.q_norm.weight",
      scope + "x.self_attn.k_proj.weight",
  };
  EXPECT_EQ(names(tensors, config), expected);
  EXPECT_EQ(names(tensors, {{"model_type", "gemma3"}}).size(), 10U);
}

TEST(MlxWeightsTest, NamesNestedModelsAsMlxLmDoes) {
  const TensorMap tensors = {
      {"lm_head.weight", tensor({4, 2})},
      {"model.language_model.embed_tokens.weight", tensor({4, 2})},
      {"model.multi_modal_projector.weight", tensor({4, 2})},
      {"model.vision_tower.weight", tensor({4, 2})},
  };
  const Names expected = {
      "language_model.lm_head.weight", "language_model.model.embed_tokens.weight"
  };
  EXPECT_EQ(names(tensors, Json::object()), expected);
  EXPECT_EQ(
      names(tensors, {{"text_config", {{"tie_word_embeddings", true}}}}), Names{expected.back()}
  );
  // The text part's word counts, as for the models.
  const Json contrary = {
      {"tie_word_embeddings", true}, {"text_config", {{"tie_word_embeddings", false}}}
  };
  EXPECT_EQ(names(tensors, contrary), expected);
  const TensorMap bare = {{"embed_tokens.weight", tensor({4, 2})}, {"norm.weight", tensor({2})}};
  EXPECT_EQ(names(bare, Json::object()), (Names{"model.embed_tokens.weight", "model.norm.weight"}));
  TensorMap embedder = bare;
  embedder.emplace("dense.0.weight", tensor({4, 2}));
  EXPECT_EQ(
      names(embedder, Json::object()),
      (Names{"dense.0.weight", "model.embed_tokens.weight", "model.norm.weight"})
  );
}

TEST(MlxWeightsTest, StacksExperts) {
  TensorMap tensors;
  for (int expert = 0; expert < 12; ++expert) {
    tensors["model.layers.3.mlp.experts." + std::to_string(expert) + ".up_proj.weight"] =
        tensor({4, 2});
  }
  const auto found = mlx_weights(tensors, Json::object());
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].name, "model.layers.3.mlp.switch_mlp.up_proj.weight");
  EXPECT_EQ(found[0].shape(), (std::vector<std::int64_t>{12, 4, 2}));
}

TEST(MlxWeightsTest, RefusesExpertsThatDoNotFitTogether) {
  const std::string start = "model.layers.0.mlp.experts.";
  expect_error(ErrorCode::kCorruptData, {"expert 2", "expected expert 1"}, [&] {
    mlx_weights(
        {{start + "0.up_proj.weight", tensor({4, 2})}, {start + "2.up_proj.weight", tensor({4, 2})}
        },
        Json::object()
    );
  });
  expect_error(ErrorCode::kCorruptData, {"[4, 3]", "[4, 2]"}, [&] {
    mlx_weights(
        {{start + "0.up_proj.weight", tensor({4, 2})}, {start + "1.up_proj.weight", tensor({4, 3})}
        },
        Json::object()
    );
  });
}

}  // namespace
}  // namespace saker::load

// SPDX-License-Identifier: Apache-2.0
#include "saker/models/embedding_config.h"

#include "saker/base/error.h"
#include "saker/models/model.h"

#include "tests/models/random_model.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <string>

namespace saker::models {
namespace {

using testing::expect_error;

Json section(const Json& content) {
  return {{std::string(kTextEmbedding), content}};
}

TEST(EmbeddingConfig, ReadsTheSectionOverTheArchitecturesOwn) {
  const EmbeddingConfig own{.pooling = Pooling::kMean};
  const EmbeddingConfig none = read_embedding_config(Json::object(), own);
  EXPECT_EQ(none.pooling, Pooling::kMean);
  EXPECT_FALSE(none.is_declared);
  const EmbeddingConfig read = read_embedding_config(
      section({{"pooling", "cls"}, {"normalize", false}, {"dense", {"tanh", "identity"}}}), own
  );
  EXPECT_EQ(read.pooling, Pooling::kCls);
  EXPECT_FALSE(read.normalize);
  EXPECT_TRUE(read.is_declared);
  EXPECT_EQ(read.dense, (std::vector{DenseActivation::kTanh, DenseActivation::kIdentity}));
  const EmbeddingConfig problem = read_embedding_config(section({{"problem", "x"}}), own);
  EXPECT_EQ(problem.problem, "x");
}

TEST(EmbeddingConfig, RefusesWhatMakesNoSense) {
  const auto fails = [](const Json& content, std::string_view word) {
    expect_error(ErrorCode::kCorruptData, {kTextEmbedding, word}, [&] {
      read_embedding_config(section(content), {});
    });
  };
  fails(3, "object");
  fails({{"pooling", "max"}}, "last, mean, cls");
  fails({{"dense", "tanh"}}, "list");
  fails({{"dense", {"gelu"}}}, "gelu");
  fails({{"dense", Json(std::vector<std::string>(17, "tanh"))}}, "16");
}

TEST(Pooling, NamesGoBothWays) {
  for (const std::string_view name : pooling_names()) {
    EXPECT_EQ(pooling_name(find_pooling(name).value()), name);
  }
  EXPECT_FALSE(find_pooling("max"));
}

// Without files that say something, the architecture decides.
TEST(EmbeddingHead, OfArchitectures) {
  Json gemma = small_config("gemma3_text");
  EXPECT_EQ(random_model(gemma, {})->embedding_head()->config().pooling, Pooling::kLast);
  EXPECT_FALSE(random_model(gemma, {})->info().bidirectional);
  gemma["use_bidirectional_attention"] = true;
  const auto model = random_model(gemma, {});
  EXPECT_EQ(model->embedding_head()->config().pooling, Pooling::kMean);
  EXPECT_TRUE(model->info().bidirectional);
  EXPECT_EQ(model->embedding_head()->size(), 32);
  EXPECT_EQ(model->embedding_head()->class_count(), 0);
}

// A base model in a file of its own has no head; others must have theirs.
TEST(EmbeddingHead, OnlyBaseModelsLackTheHead) {
  const Json config = small_config("qwen3");
  nn::TensorMap tensors = random_tensors(config, {});
  tensors.erase("lm_head.weight");
  expect_error(ErrorCode::kCorruptData, {"lm_head.weight"}, [&] {
    make_model(config, nn::Weights(tensors, {}), {});
  });
  nn::TensorMap bare;
  for (auto& [name, tensor] : tensors) {
    constexpr std::string_view kScope = "model.";
    bare.emplace(name.starts_with(kScope) ? name.substr(kScope.size()) : name, tensor);
  }
  const auto model = make_model(config, nn::Weights(bare, {}), {});
  EXPECT_FALSE(model->info().has_head);
  expect_error(ErrorCode::kUnsupported, {"only embeds texts", "lm_head.weight"}, [&] {
    model->unembed(mx::zeros({1, 32}), {});
  });
}

}  // namespace
}  // namespace saker::models

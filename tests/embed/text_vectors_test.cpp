// SPDX-License-Identifier: Apache-2.0
#include "saker/embed/text_vectors.h"

#include "saker/base/error.h"

#include "tests/embed/golden_models.h"
#include "tests/models/random_model.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace saker::embed {
namespace {

using models::Pooling;
using testing::expect_error;

constexpr float kExact = 2e-6F;

VectorOptions own_options(const models::Model& model) {
  const models::EmbeddingConfig& config = model.embedding_head()->config();
  return {.pool = {.pooling = config.pooling}, .normalize = config.normalize};
}

class GoldenVectors : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenVectors, AreThoseOfSentenceTransformers) {
  const GoldenModel golden(GetParam());
  EXPECT_EQ(golden.loaded.warnings, std::vector<std::string>());
  VectorOptions options = own_options(golden.model());
  const auto vectors = text_vectors(golden.model(), golden.sequences, options);
  expect_near(vectors, golden.vectors("vectors"), kExact);
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const std::span<const TokenSpan> one(&golden.sequences[i], 1);
    EXPECT_EQ(text_vectors(golden.model(), one, options).front(), vectors[i]);
  }
  options.dimensions = 8;
  expect_near(
      text_vectors(golden.model(), golden.sequences, options), golden.vectors("cut"), kExact
  );
}

INSTANTIATE_TEST_SUITE_P(
    Models,
    GoldenVectors,
    ::testing::Values(
        "gemma3", "qwen3", "qwen3_old", "bert", "xlm_roberta", "nomic_bert", "modernbert"
    )
);

TEST(TextVectors, ReadsTheModulesOfBothFormats) {
  const models::EmbeddingConfig gemma = GoldenModel("gemma3").model().embedding_head()->config();
  EXPECT_EQ(gemma.pooling, Pooling::kMean);
  EXPECT_TRUE(gemma.normalize && gemma.is_declared);
  EXPECT_EQ(
      gemma.dense, (std::vector{models::DenseActivation::kTanh, models::DenseActivation::kIdentity})
  );
  for (const std::string name : {"qwen3", "qwen3_old"}) {
    const models::EmbeddingConfig qwen = GoldenModel(name).model().embedding_head()->config();
    EXPECT_EQ(qwen.pooling, Pooling::kLast) << name;
    EXPECT_TRUE(qwen.normalize && qwen.is_declared && qwen.dense.empty()) << name;
  }
}

TEST(TextVectors, KeepsTheirLengthIfAsked) {
  const GoldenModel golden("gemma3");
  VectorOptions options = own_options(golden.model());
  const auto unit = text_vectors(golden.model(), golden.sequences, options);
  options.normalize = false;
  const auto raw = text_vectors(golden.model(), golden.sequences, options);
  for (std::size_t i = 0; i < raw.size(); ++i) {
    double squares = 0.0;
    for (const float x : raw[i]) {
      squares += static_cast<double>(x) * static_cast<double>(x);
    }
    EXPECT_GT(std::abs(squares - 1.0), 1e-3);
    for (std::size_t at = 0; at < raw[i].size(); ++at) {
      EXPECT_NEAR(raw[i][at] / std::sqrt(squares), unit[i][at], 1e-6);
    }
  }
}

// A model that generates has the last token's row as the vector.
TEST(TextVectors, OfAModelThatGenerates) {
  const auto model = models::random_model(models::small_config("llama"), {});
  const std::vector<std::int32_t> ids = {1, 2, 3};
  const TokenSpan tokens(ids);
  const VectorOptions options = own_options(*model);
  EXPECT_EQ(options.pool.pooling, Pooling::kLast);
  EXPECT_TRUE(options.normalize);
  EXPECT_EQ(text_vectors(*model, std::span(&tokens, 1), options).front().size(), 32U);
}

TEST(TextVectors, NamesWhatIsWrong) {
  const GoldenModel golden("gemma3");
  VectorOptions options = own_options(golden.model());
  for (const int dimensions : {-1, 25}) {
    options.dimensions = dimensions;
    expect_error(ErrorCode::kInvalidArgument, {"dimensions", "24"}, [&] {
      text_vectors(golden.model(), golden.sequences, options);
    });
  }
  expect_error(ErrorCode::kUnsupported, {"score.weight"}, [&] {
    class_scores(golden.model(), golden.sequences, {});
  });
}

TEST(ClassScores, AreTheClassifiers) {
  const GoldenModel golden("classifier");
  const auto scores = class_scores(golden.model(), golden.sequences, {});
  ASSERT_EQ(scores.size(), golden.tokens.size());
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double wanted = golden.golden.at("scores").at(i).get<double>();
    ASSERT_EQ(scores[i].size(), 1U);
    EXPECT_NEAR(1.0 / (1.0 + std::exp(-static_cast<double>(scores[i][0]))), wanted, 1e-5);
  }
}

}  // namespace
}  // namespace saker::embed

// SPDX-License-Identifier: Apache-2.0
// Encoders against what transformers computed with them in float32 (tools/make_embedding_goldens.py).
#include "saker/base/error.h"
#include "saker/embed/text_vectors.h"
#include "saker/load/importers/model_folder.h"
#include "saker/models/model.h"

#include "tests/embed/golden_models.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace saker::embed {
namespace {

using testing::expect_error;

constexpr float kNear = 3e-5F;

using Taps = std::vector<std::vector<float>>;

// The rows of the golden's text: of the embedding, after each layer, and the final ones.
Taps taps_of(const models::Model& model, const Json& golden) {
  const auto ids = golden.at("tap_tokens").get<std::vector<std::int32_t>>();
  const int count = static_cast<int>(ids.size());
  auto cache = model.make_cache({});
  nn::ForwardContext context({{&cache, count}});
  for (int layer = -1; layer <= model.info().layer_count; ++layer) {
    context.captured_layers.push_back(layer);
  }
  model.forward(mx::array(ids.data(), {count}, mx::int32), context);
  Taps taps;
  for (const int layer : context.captured_layers) {
    auto rows = mx::contiguous(context.captured.at(layer));
    mx::eval(rows);
    taps.emplace_back(rows.data<float>(), rows.data<float>() + rows.size());
  }
  return taps;
}

float largest_difference(const Taps& taps, const Json& golden) {
  float most = 0.0F;
  for (std::size_t i = 0; i < taps.size(); ++i) {
    std::vector<float> wanted;
    for (const Json& row : golden.at("taps").at(i)) {
      const auto floats = row.get<std::vector<float>>();
      wanted.insert(wanted.end(), floats.begin(), floats.end());
    }
    EXPECT_EQ(taps[i].size(), wanted.size());
    for (std::size_t at = 0; at < std::min(taps[i].size(), wanted.size()); ++at) {
      most = std::max(most, std::abs(taps[i][at] - wanted[at]));
    }
  }
  return most;
}

// The golden with another configuration.
template <typename Change>
std::unique_ptr<const models::Model> changed(const GoldenModel& golden, const Change& change) {
  auto folder = load::importers::read_model_folder(golden.path);
  change(folder.config);
  return models::make_model(folder.config, nn::Weights(folder.read.tensors, {}), {});
}

class Encoders : public ::testing::TestWithParam<std::string> {};

TEST_P(Encoders, RowsAreThoseOfTransformers) {
  const GoldenModel golden(GetParam());
  EXPECT_EQ(golden.loaded.warnings, std::vector<std::string>());
  const Taps taps = taps_of(golden.model(), golden.golden);
  ASSERT_EQ(taps.size(), golden.golden.at("taps").size());
  EXPECT_LE(largest_difference(taps, golden.golden), kNear);
}

INSTANTIATE_TEST_SUITE_P(
    Models, Encoders, ::testing::Values("bert", "xlm_roberta", "nomic_bert", "modernbert")
);

// Each of these would be seen.
TEST(EncoderFields, AreRead) {
  struct Change {
    std::string model;
    std::string at;
    Json value;
  };

  const std::vector<Change> changes = {
      {"bert", "/layer_norm_eps", 1e-12},
      {"bert", "/hidden_act", "gelu_new"},
      {"xlm_roberta", "/pad_token_id", 2},
      {"xlm_roberta", "/layer_norm_eps", 1e-2},
      {"nomic_bert", "/rope_parameters/rope_theta", 10000.0},
      {"nomic_bert", "/hidden_act", "gelu"},
      {"modernbert", "/local_attention", 16},
      {"modernbert", "/norm_eps", 1e-5},
      {"modernbert", "/hidden_activation", "gelu_pytorch_tanh"},
      {"modernbert", "/rope_parameters/sliding_attention/rope_theta", 200.0},
      {"modernbert", "/rope_parameters/full_attention/rope_theta", 20.0},
      {"modernbert",
       "/layer_types",
       {"full_attention", "full_attention", "sliding_attention", "full_attention"}},
  };
  for (const Change& change : changes) {
    const GoldenModel golden(change.model);
    const auto other = changed(golden, [&](Json& config) {
      config[Json::json_pointer(change.at)] = change.value;
    });
    EXPECT_GT(largest_difference(taps_of(*other, golden.golden), golden.golden), 2 * kNear)
        << change.model << change.at;
  }
}

// Older configurations say the same in other words.
TEST(EncoderFields, OlderNames) {
  const GoldenModel modern("modernbert");
  const auto older = changed(modern, [](Json& config) {
    config.erase("layer_types");
    config.erase("rope_parameters");
    config.update({
        {"global_attn_every_n_layers", 3},
        {"global_rope_theta", 200.0},
        {"local_rope_theta", 20.0},
    });
  });
  EXPECT_LE(largest_difference(taps_of(*older, modern.golden), modern.golden), kNear);

  const GoldenModel nomic("nomic_bert");
  const auto gpt = changed(nomic, [](Json& config) {
    for (const auto& [own, other] : std::vector<std::pair<std::string, std::string>>{
             {"n_embd", "hidden_size"},
             {"n_inner", "intermediate_size"},
             {"n_layer", "num_hidden_layers"},
             {"n_head", "num_attention_heads"},
             {"n_positions", "max_position_embeddings"},
             {"layer_norm_epsilon", "layer_norm_eps"},
         }) {
      config[own] = config.at(other);
      config.erase(other);
    }
    config.erase("rope_parameters");
    config.erase("hidden_act");
    config.update({
        {"rotary_emb_base", 50},
        {"rotary_emb_fraction", 1.0},
        {"rotary_emb_interleaved", false},
        {"rotary_emb_scale_base", nullptr},
        {"rotary_scaling_factor", nullptr},
        {"activation_function", "swiglu"},
    });
  });
  EXPECT_LE(largest_difference(taps_of(*gpt, nomic.golden), nomic.golden), kNear);
}

class CrossEncoders : public ::testing::TestWithParam<std::string> {};

TEST_P(CrossEncoders, ScoresAreThoseOfSentenceTransformers) {
  const GoldenModel golden(GetParam());
  EXPECT_EQ(golden.loaded.warnings, std::vector<std::string>());
  EXPECT_TRUE(golden.model().info().judges_pairs);
  PoolOptions options;
  for (const Json& row : golden.golden.at("types")) {
    const auto types = row.get<std::vector<int>>();
    options.second_types.push_back(static_cast<int>(std::ranges::find(types, 1) - types.begin()));
  }
  const auto scores = class_scores(golden.model(), golden.sequences, options);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    ASSERT_EQ(scores[i].size(), 1U);
    const double score = 1.0 / (1.0 + std::exp(-static_cast<double>(scores[i].front())));
    EXPECT_NEAR(score, golden.golden.at("scores").at(i).get<double>(), 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, CrossEncoders, ::testing::Values("bert_pairs", "xlm_roberta_pairs", "modernbert_pairs")
);

TEST(Pairs, TypesOfTokensCount) {
  const GoldenModel golden("bert_pairs");
  PoolOptions options;
  for (const TokenSpan tokens : golden.sequences) {
    options.second_types.push_back(static_cast<int>(tokens.size()) / 2);
  }
  EXPECT_NE(
      class_scores(golden.model(), golden.sequences, options),
      class_scores(golden.model(), golden.sequences, {})
  );
  options.second_types.pop_back();
  expect_error(ErrorCode::kInvalidArgument, {"second_types"}, [&] {
    class_scores(golden.model(), golden.sequences, options);
  });
}

}  // namespace
}  // namespace saker::embed

// SPDX-License-Identifier: Apache-2.0
// Views of one model in one batch: the bits of each are those of its run alone, also where layers
// below the first that an adapter changes run once for all.
#include "saker/score/token_scores.h"

#include "tests/models/random_model.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace saker::score {
namespace {

kernels::PackedWeight random_pack(int rows, int columns, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, 0.3F);
  std::vector<float> values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  for (float& x : values) {
    x = normal(random);
  }
  kernels::WeightTensors tensors;
  tensors.weight = nn::float_tensor({rows, columns}, values);
  return kernels::PackedWeight::pack({tensors}, {.kind = kernels::WeightKind::kFloat32});
}

// Changes the output projections of attention (32 to 32) of these layers.
std::shared_ptr<const nn::Adapter> random_adapter(const std::vector<int>& layers, unsigned seed) {
  nn::Adapter::Changes changes;
  for (const int layer : layers) {
    auto change = std::make_shared<kernels::AdapterDelta>();
    change->down = random_pack(4, 32, seed);
    change->up = random_pack(32, 4, seed + 1);
    change->scales.assign(32, 1.5F);
    changes[fmt::format("model.layers.{}.self_attn.o_proj", layer)] = {change};
  }
  return std::make_shared<const nn::Adapter>(fmt::format("adapter {}", seed), changes, layers[0]);
}

std::unique_ptr<const models::Model> four_layers(const std::string& model_type) {
  Json config = models::small_config(model_type);
  config["num_hidden_layers"] = 4;
  config["sliding_window"] = 9;
  config["global_head_dim"] = config["head_dim"];
  return models::random_model(config, {.seed = 7});
}

std::vector<std::int32_t> some_tokens(int count, int seed) {
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back((i * 37 + i * i + seed) % 50);
  }
  return tokens;
}

void expect_bits_of_single_runs(const std::string& model_type, int first_layer) {
  const auto model = four_layers(model_type);
  const auto adapter = random_adapter({first_layer, 3}, 1);
  const auto other = random_adapter({3}, 5);
  std::vector<ScoreJob> jobs;
  for (const int size : {150, 3, 20}) {
    for (const auto& use :
         {nn::AdapterUse{}, nn::AdapterUse{adapter, 1.0F}, nn::AdapterUse{adapter, 0.5F}}) {
      jobs.push_back({.tokens = some_tokens(size, size), .top_k = 3, .adapter = use});
    }
  }
  // Shares a prefix with the longest, and has a view of its own.
  jobs.push_back({.tokens = some_tokens(140, 150), .adapter = {other, 1.0F}});
  jobs.back().tokens.push_back(3);
  jobs.push_back({.tokens = jobs.back().tokens});
  for (const int step : {512, 50}) {
    const std::vector<TokenScores> batch = score_batch(*model, jobs, {.prefill_step = step});
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const TokenScores alone = score_batch(*model, std::span(&jobs[i], 1), {}).at(0);
      EXPECT_EQ(batch[i].logprobs, alone.logprobs) << model_type << " job " << i;
      EXPECT_EQ(batch[i].next, alone.next) << model_type << " job " << i;
    }
    EXPECT_NE(batch[0].sum, batch[1].sum);
    EXPECT_NE(batch[1].sum, batch[2].sum);
  }
}

TEST(Views, HaveTheBitsOfTheirSingleRuns) {
  for (const char* model_type : {"qwen3", "gemma3_text", "gemma4_text", "qwen3_moe"}) {
    for (const int first_layer : {0, 2}) {
      expect_bits_of_single_runs(model_type, first_layer);
    }
  }
}

TEST(Views, StrengthZeroIsTheBase) {
  const auto model = four_layers("llama");
  const auto adapter = random_adapter({1}, 3);
  const std::vector<ScoreJob> jobs = {
      {.tokens = some_tokens(70, 1)},
      {.tokens = some_tokens(70, 1), .adapter = {adapter, 0.0F}},
      {.tokens = some_tokens(70, 1), .adapter = {adapter, 1.0F}},
  };
  const std::vector<TokenScores> scores = score_batch(*model, jobs, {});
  EXPECT_EQ(scores[0].logprobs, scores[1].logprobs);
  EXPECT_NE(scores[0].logprobs, scores[2].logprobs);
  EXPECT_EQ(scores[0].logprobs, score_batch(*model, std::span(jobs).first(1), {})[0].logprobs);
}

}  // namespace
}  // namespace saker::score

// SPDX-License-Identifier: Apache-2.0
// Gemma 4's assistants: logits against tools/make_assistant_goldens.py, and what is refused.
#include "saker/models/assistant.h"

#include "saker/load/checkpoint.h"
#include "saker/load/draft.h"

#include "tests/models/random_assistant.h"
#include "tests/support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace saker::models {
namespace {

using testing::expect_error;

Json small_target() {
  Json config = small_config("gemma4");
  config["sliding_window"] = 11;
  return config;
}

class AssistantGoldens : public ::testing::TestWithParam<const char*> {};

// Each round's chain, from what the target gave for the tokens before.
TEST_P(AssistantGoldens, LogitsOfDraftTokens) {
  const auto folder = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/assistant";
  const auto target = load::load_checkpoint(folder / "target").model;
  const auto loaded = load::load_draft(folder / GetParam(), target->info());
  ASSERT_NE(loaded.assistant, nullptr);
  EXPECT_TRUE(loaded.warnings.empty());
  const auto golden =
      mx::load_safetensors((folder / GetParam() / "golden.safetensors").string()).first;
  const auto ids = mx::concatenate({golden.at("ids"), golden.at("tokens")});
  const auto& drafted = golden.at("drafted");
  for (int round = 0; round < drafted.shape(0); ++round) {
    const int context = mx::take(golden.at("context"), round).item<std::int32_t>();
    auto cache = target->make_cache({});
    cache::SequenceCache* caches[] = {&cache};
    nn::ForwardContext pass({{&cache, context - 1}});
    const auto rows = target->forward(mx::slice(ids, {0}, {context - 1}), pass);
    mx::eval(rows);
    auto before = mx::slice(rows, {context - 2, 0}, rows.shape());
    auto token = mx::slice(ids, {context - 1}, {context});
    for (int step = 0; step < drafted.shape(1); ++step) {
      const auto hidden = loaded.assistant->forward(token, before, caches, *target);
      const auto logits = loaded.assistant->logits(hidden);
      const auto expected = mx::reshape(
          mx::slice(drafted, {round, step, 0}, {round + 1, step + 1, drafted.shape(2)}),
          logits.shape()
      );
      const auto seen = mx::isfinite(logits);
      const auto difference = mx::where(seen, mx::subtract(logits, expected), mx::array(0.0F));
      EXPECT_LT(mx::max(mx::abs(difference)).item<float>(), 2e-4F);
      // The reference gives all others one number below those.
      const auto lowest = mx::min(mx::where(seen, expected, mx::array(1e9F)));
      EXPECT_TRUE(mx::all(mx::logical_or(seen, mx::less(expected, lowest))).item<bool>());
      const int wanted = loaded.assistant->config().centroids > 0 ? 5 * (96 / 12) : 96;
      EXPECT_EQ(mx::sum(seen).item<std::int32_t>(), wanted);
      before = loaded.assistant->project(hidden);
      token =
          mx::reshape(mx::slice(golden.at("drafts"), {round, step}, {round + 1, step + 1}), {1});
    }
    EXPECT_EQ(cache.offset(), context - 1);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    AssistantGoldens,
    ::testing::Values("plain", "groups"),
    [](const auto& test) { return std::string(test.param); }
);

TEST(AssistantDraft, IsToldByItsModelType) {
  EXPECT_TRUE(is_assistant_config(small_assistant_config()));
  EXPECT_FALSE(is_assistant_config(small_target()));
  EXPECT_FALSE(is_assistant_config(Json::array()));
  Json unified = small_assistant_config();
  unified["model_type"] = "gemma4_unified_assistant";
  EXPECT_TRUE(is_assistant_config(unified));
}

TEST(AssistantDraft, RefusesAnotherTarget) {
  const auto target = random_model(small_target(), {});
  const auto refuses = [&](const Json& config, const std::vector<std::string_view>& parts) {
    expect_error(ErrorCode::kInvalidArgument, parts, [&] {
      random_assistant(config, target->info());
    });
  };
  Json config = small_assistant_config();
  config["backbone_hidden_size"] = 40;
  refuses(config, {"backbone_hidden_size", "40", "32"});
  config = small_assistant_config();
  config["text_config"]["vocab_size"] = 60;
  refuses(config, {"vocab_size", "60", "50"});
  config = small_assistant_config();
  config["text_config"]["global_head_dim"] = 24;
  refuses(config, {"full attention", "24", "16"});
  config = small_assistant_config();
  config["text_config"]["num_attention_heads"] = 3;
  config["text_config"]["num_key_value_heads"] = 1;
  refuses(config, {"sliding attention", "3 heads of 8", "multiple of the model's 2 of 8"});
  expect_error(ErrorCode::kInvalidArgument, {"sliding", "has none"}, [&] {
    random_assistant(small_assistant_config(), random_model(small_config("llama"), {})->info());
  });
}

TEST(AssistantDraft, RefusesNumbersThatDoNotFit) {
  Json config = small_assistant_config(true);
  config["num_centroids"] = 12;
  expect_error(ErrorCode::kCorruptData, {"num_centroids", "12", "50"}, [&] {
    read_assistant_config(config);
  });
  config = small_assistant_config(true);
  config["centroid_intermediate_top_k"] = 11;
  expect_error(ErrorCode::kCorruptData, {"centroid_intermediate_top_k", "11", "10"}, [&] {
    read_assistant_config(config);
  });
  config = small_assistant_config();
  config["text_config"]["use_double_wide_mlp"] = true;
  expect_error(ErrorCode::kUnsupported, {"use_double_wide_mlp"}, [&] {
    read_assistant_config(config);
  });
}

TEST(AssistantDraft, NamesTensorsThatAreMissingOrWrong) {
  const auto target = random_model(small_target(), {});
  const Json config = small_assistant_config(true);
  const auto refuses = [&](const nn::TensorMap& tensors,
                           const std::vector<std::string_view>& parts) {
    expect_error(ErrorCode::kCorruptData, parts, [&] {
      const AssistantDraft assistant(
          read_assistant_config(config), target->info(), nn::Weights(tensors, {})
      );
    });
  };
  for (const auto* name :
       {"pre_projection.weight",
        "model.embed_tokens.weight",
        "model.layers.1.self_attn.q_norm.weight",
        "masked_embedding.centroids.weight",
        "masked_embedding.token_ordering"}) {
    auto tensors = random_assistant_tensors(config);
    tensors.erase(name);
    refuses(tensors, {name});
  }
  auto tensors = random_assistant_tensors(config);
  tensors["post_projection.weight"] = nn::float_tensor({24, 24}, std::vector<float>(576, 0.0F));
  refuses(tensors, {"post_projection.weight", "24", "32"});
  const auto order = [&](std::int64_t size, std::int64_t value) {
    return nn::make_tensor(
        DType::kInt64, {size}, std::vector<std::int64_t>(static_cast<std::size_t>(size), value)
    );
  };
  tensors = random_assistant_tensors(config);
  tensors["masked_embedding.token_ordering"] = order(49, 0);
  refuses(tensors, {"token_ordering", "49", "50"});
  for (const std::int64_t id : {std::int64_t{50}, std::int64_t{-1}, std::int64_t{1} << 40}) {
    tensors["masked_embedding.token_ordering"] = order(50, id);
    const std::string got = std::to_string(id);
    refuses(tensors, {"token_ordering", got, "0 to 49"});
  }
}

TEST(AssistantDraft, NeedsRowsOfTheTarget) {
  const auto target = random_model(small_target(), {});
  const auto assistant = random_assistant(small_assistant_config(), target->info());
  auto cache = target->make_cache({});
  cache::SequenceCache* caches[] = {&cache};
  expect_error(ErrorCode::kInvalidArgument, {"cache of 0"}, [&] {
    assistant->forward(mx::array({3}, mx::int32), mx::zeros({1, 32}), caches, *target);
  });
}

}  // namespace
}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
// MTP heads: logits against tools/make_mtp_goldens.py, and heads that are not what they should be.
#include "saker/models/mtp.h"

#include "saker/load/checkpoint.h"

#include "tests/models/random_mtp.h"
#include "tests/support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace saker::models {
namespace {

using testing::expect_error;

// Final normed rows of the model for these tokens.
mx::array hidden_of(const Model& model, const mx::array& ids) {
  auto cache = model.make_cache({});
  nn::ForwardContext context({{&cache, ids.shape(0)}});
  return model.forward(ids, context);
}

float largest_difference(const mx::array& one, const mx::array& other) {
  return mx::max(mx::abs(mx::subtract(one, other))).item<float>();
}

class MtpGoldens : public ::testing::TestWithParam<const char*> {};

TEST_P(MtpGoldens, LogitsOfTrueTokens) {
  const auto dir = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/mtp" / GetParam();
  const auto loaded = load::load_checkpoint(dir, {}, true);
  ASSERT_NE(loaded.mtp, nullptr);
  EXPECT_TRUE(loaded.warnings.empty());
  const auto golden = mx::load_safetensors((dir / "golden.safetensors").string()).first;
  const auto ids = mx::concatenate({golden.at("ids"), golden.at("tokens")});
  const int rows = ids.shape(0) - 1;
  const auto hidden = hidden_of(*loaded.model, ids);
  const auto next = mx::slice(ids, {1}, {rows + 1});
  for (const int first_pass : {rows, 1, 7}) {
    auto cache = loaded.mtp->make_cache({});
    std::vector<mx::array> parts;
    for (const auto& [first, end] : {std::pair{0, first_pass}, {first_pass, rows}}) {
      if (first < end) {
        nn::ForwardContext context({{&cache, end - first}});
        parts.push_back(loaded.mtp->forward(
            mx::slice(next, {first}, {end}),
            mx::slice(hidden, {first, 0}, {end, hidden.shape(1)}),
            context,
            *loaded.model
        ));
        mx::eval(parts.back());
      }
    }
    const auto logits = loaded.model->unembed(mx::concatenate(parts, 0), {});
    EXPECT_LT(largest_difference(logits, golden.at("logits")), 2e-4F);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    MtpGoldens,
    ::testing::Values("deepseek_v3", "glm4_moe", "qwen3", "qwen3_5", "qwen3_5_moe"),
    [](const auto& test) { return std::string(test.param); }
);

TEST(Mtp, IsLeftAsideUnlessWanted) {
  const auto dir = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/mtp/qwen3";
  const auto loaded = load::load_checkpoint(dir);
  EXPECT_EQ(loaded.mtp, nullptr);
  EXPECT_TRUE(loaded.warnings.empty());
}

TEST(Mtp, MayHaveSeveralLayers) {
  const Json config = small_config("qwen3");
  const auto model = random_model(config, {});
  const auto one = random_mtp(config);
  const auto two = random_mtp(config, {}, 2);
  EXPECT_EQ(two->make_cache({}).layer_count(), 2);
  const auto ids = mx::array({4, 1, 30}, mx::int32);
  const auto hidden = hidden_of(*model, ids);
  const auto run = [&](const MtpHead& head) {
    auto cache = head.make_cache({});
    nn::ForwardContext context({{&cache, 3}});
    auto rows = head.forward(ids, hidden, context, *model);
    mx::eval(rows);
    return rows;
  };
  EXPECT_GT(largest_difference(run(*one), run(*two)), 1e-3F);
}

TEST(Mtp, IsFoundWhereItsTensorsAre) {
  const Json config = small_config("qwen3");
  const auto tensors = random_mtp_tensors(config);
  for (const auto* prefix : {"", "model.", "language_model."}) {
    nn::TensorMap moved;
    for (const auto& [name, tensor] : tensors) {
      moved.emplace(prefix + name, tensor);
    }
    EXPECT_NE(make_mtp_head(config, nn::Weights(moved, {})), nullptr) << prefix;
  }
  EXPECT_EQ(make_mtp_head(config, nn::Weights(random_tensors(config, {}), {})), nullptr);
  // Of families that have none like it.
  EXPECT_EQ(make_mtp_head(small_config("llama"), nn::Weights(tensors, {})), nullptr);
}

TEST(Mtp, MayBeTheLayerBehindTheLast) {
  for (const auto* type : {"deepseek_v3", "kimi_k25", "glm4_moe", "glm4_moe_lite"}) {
    SCOPED_TRACE(type);
    const Json config = small_config(type);
    auto tensors = random_next_layer_tensors(config);
    EXPECT_NE(make_mtp_head(config, nn::Weights(tensors, {})), nullptr);
    EXPECT_EQ(make_mtp_head(config, nn::Weights(random_tensors(config, {}), {})), nullptr);
    tensors.erase("model.layers.2.hnorm.weight");
    expect_error(ErrorCode::kCorruptData, {"model.layers.2.hnorm.weight"}, [&] {
      make_mtp_head(config, nn::Weights(tensors, {}));
    });
  }
  // A family that has none like it.
  const Json other = small_config("qwen3_moe");
  EXPECT_EQ(make_mtp_head(other, nn::Weights(random_next_layer_tensors(other), {})), nullptr);
}

TEST(Mtp, KnowsItsTensorsBehindTheLayers) {
  const Json config = small_config("glm4_moe");
  EXPECT_TRUE(is_of_next_layer("model.layers.2.eh_proj.weight", config));
  EXPECT_TRUE(is_of_next_layer("model.layers.2.mlp.experts.1.up_proj.weight", config));
  for (const auto* name :
       {"model.layers.2.embed_tokens.weight",
        "model.layers.2.shared_head.head.weight",
        "model.layers.3.eh_proj.weight"}) {
    EXPECT_FALSE(is_of_next_layer(name, config));
    EXPECT_TRUE(is_behind_next_layer(name, config));
  }
  EXPECT_FALSE(is_of_next_layer("model.layers.1.mlp.gate.weight", config));
  EXPECT_FALSE(is_behind_next_layer("model.layers.1.mlp.gate.weight", config));
}

TEST(Mtp, NamesTheTensorThatIsMissing) {
  const Json config = small_config("qwen3_5");
  for (const auto* name :
       {"mtp.norm.weight",
        "mtp.pre_fc_norm_embedding.weight",
        "mtp.layers.0.self_attn.k_proj.weight",
        "mtp.layers.0.self_attn.q_norm.weight",
        "mtp.layers.0.mlp.down_proj.weight"}) {
    auto tensors = random_mtp_tensors(config);
    tensors.erase(name);
    expect_error(ErrorCode::kCorruptData, {name}, [&] {
      make_mtp_head(config, nn::Weights(tensors, {}));
    });
  }
}

TEST(Mtp, NamesTheTensorOfAnotherShape) {
  const Json config = small_config("qwen3");
  for (const auto& [name, shape] : std::map<std::string, std::vector<std::int64_t>>{
           {"mtp.fc.weight", {32, 32}},
           {"mtp.norm.weight", {31}},
           {"mtp.layers.0.self_attn.q_proj.weight", {64, 32}},
           {"mtp.layers.0.mlp.up_proj.weight", {64, 30}}
       }) {
    auto tensors = random_mtp_tensors(config);
    std::size_t size = 1;
    for (const auto length : shape) {
      size *= static_cast<std::size_t>(length);
    }
    tensors[name] = nn::float_tensor(shape, std::vector<float>(size, 1.0F));
    const std::string got = std::to_string(shape.back());
    expect_error(ErrorCode::kCorruptData, {name, got, "32"}, [&] {
      make_mtp_head(config, nn::Weights(tensors, {}));
    });
  }
}

TEST(Mtp, RefusesAnotherTarget) {
  const auto head = random_mtp(small_config("qwen3"));
  Json other = small_config("qwen3");
  other["vocab_size"] = 60;
  expect_error(ErrorCode::kInvalidArgument, {"vocab_size", "50", "60"}, [&] {
    check_target(*head, random_model(other, {})->info());
  });
  other = small_config("qwen3");
  other["hidden_size"] = 40;
  expect_error(ErrorCode::kInvalidArgument, {"hidden_size", "32", "40"}, [&] {
    check_target(*head, random_model(other, {})->info());
  });
}

}  // namespace
}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
// Files that llama.cpp's converter made of tests/golden's models (tools/make_gguf_model_goldens.py):
// they give the goldens' logits.
#include "saker/load/checkpoint.h"
#include "saker/models/model.h"
#include "saker/models/mtp.h"
#include "saker/nn/forward_context.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace saker::load::gguf {
namespace {

class GgufGoldenModels : public ::testing::TestWithParam<const char*> {};

TEST_P(GgufGoldenModels, GiveTheLogitsOfTheFolder) {
  const auto golden = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden";
  const auto loaded = load_checkpoint(golden / "gguf/models" / (std::string(GetParam()) + ".gguf"));
  const auto reference =
      mx::load_safetensors((golden / GetParam() / "golden.safetensors").string()).first;
  const auto& ids = reference.at("ids");
  auto cache = loaded.model->make_cache({});
  nn::ForwardContext context({{&cache, ids.shape(0)}});
  const auto logits =
      loaded.model->unembed(loaded.model->forward(ids, context), context.adapters());
  auto difference = mx::max(mx::abs(mx::subtract(logits, reference.at("logits"))));
  EXPECT_LT(difference.item<float>(), 3e-5F);
}

INSTANTIATE_TEST_SUITE_P(
    All,
    GgufGoldenModels,
    ::testing::Values(
        "afmoe",
        "bailing_moe_v2",
        "cohere2",
        "cohere2_moe",
        "deepseek_v2",
        "deepseek_v3_single",
        "dots1",
        "ernie4_5_moe",
        "exaone4",
        "falcon_h1_norm",
        "gemma4_moe_published",
        "glm4_moe",
        "gpt_oss_published",
        "granite",
        "kimi_linear",
        "granitemoe",
        "granitemoehybrid",
        "granitemoehybrid_moe",
        "hunyuan_v1_moe",
        "lfm2",
        "lfm2_moe",
        "llama4_usual",
        "minimax_m2",
        "ministral3",
        "mixtral",
        "nemotron_h",
        "nemotron_h_moe",
        "olmo3",
        "olmoe",
        "phi3",
        "qwen2_moe",
        "qwen3_vl_moe",
        "qwen3_5_moe_published",
        "qwen3_next_published"
    ),
    [](const auto& test) { return std::string(test.param); }
);

// What the head gives for the second of two tokens.
mx::array drafted(const LoadedCheckpoint& loaded) {
  const mx::array ids({5, 9, 33}, mx::int32);
  auto cache = loaded.model->make_cache({});
  nn::ForwardContext context({{&cache, 3}});
  const auto rows = loaded.model->forward(ids, context);
  auto own_cache = loaded.mtp->make_cache({});
  nn::ForwardContext own({{&own_cache, 2}});
  return loaded.mtp->forward(
      mx::slice(ids, {1}, {3}), mx::slice(rows, {0, 0}, {2, rows.shape(1)}), own, *loaded.model
  );
}

TEST(GgufHeads, LieInTheLayerBehindTheLast) {
  const auto golden = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden";
  const auto file = load_checkpoint(golden / "gguf/models/mtp_glm4_moe.gguf", {}, true);
  const auto folder = load_checkpoint(golden / "mtp/glm4_moe", {}, true);
  ASSERT_NE(file.mtp, nullptr);
  ASSERT_NE(folder.mtp, nullptr);
  auto difference = mx::max(mx::abs(mx::subtract(drafted(file), drafted(folder))));
  EXPECT_LT(difference.item<float>(), 3e-5F);
}

}  // namespace
}  // namespace saker::load::gguf

// SPDX-License-Identifier: Apache-2.0
// Files that llama.cpp's converter made of tests/golden's models (tools/make_gguf_model_goldens.py):
// they give the goldens' logits.
#include "saker/load/checkpoint.h"
#include "saker/models/model.h"
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

}  // namespace
}  // namespace saker::load::gguf

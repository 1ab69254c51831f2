// SPDX-License-Identifier: Apache-2.0
// Every kind of adapter against logits that tools/make_adapter_goldens.py computed in float32 with
// mlx-lm and PEFT, and the bits of rows in passes with other rows.
#include "saker/adapters/bind.h"
#include "saker/load/checkpoint.h"

#include "tests/adapters/logits.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <ostream>

namespace saker::adapters {
namespace {

using testing::Logits;
using testing::mean_difference;
using testing::run_alone;
using testing::run_pass;
using testing::same_bits;
using testing::View;

struct Case {
  std::string_view name;
  std::string_view base;
  double tolerance;  // Of log-probabilities, on average.

  friend std::ostream& operator<<(std::ostream& out, const Case& self) { return out << self.name; }
};

constexpr double kExact = 2e-5;
constexpr double kHalf = 3e-2;  // Operands of products and cached rows are bf16.

constexpr Case kCases[] = {
    {"mlx_lora", "qwen3", kExact},
    {"mlx_lora_last", "llama", kExact},
    {"mlx_lora_embedding", "qwen3", kExact},
    {"mlx_lora_head", "llama", kExact},
    {"mlx_lora_q4", "qwen3_q4", kHalf},
    {"mlx_lora_moe", "qwen3_moe", kExact},
    {"mlx_lora_experts", "qwen3_moe", kExact},
    {"mlx_lora_experts_q4", "qwen3_moe_q4", kHalf},
    {"mlx_lora_experts_single", "qwen3_moe_single", kExact},
    {"mlx_lora_layer_inputs", "gemma4_small", kExact},
    {"mlx_dora", "llama_bias", kExact},
    {"mlx_dora_q8", "qwen3_q8", kHalf},
    {"peft_llama", "llama", kExact},
    {"peft_qwen3", "qwen3", kExact},
    {"peft_mistral", "mistral", kExact},
    {"peft_gemma2", "gemma2", kExact},
    {"peft_gemma3", "gemma3", kExact},
    {"peft_qwen2", "qwen2", kExact},
    {"peft_moe", "qwen3_moe", kExact},
    {"peft_gemma", "gemma", kExact},
    {"peft_patterns", "qwen3", kExact},
    {"peft_layers", "llama", kExact},
    {"peft_embedding", "qwen3", kExact},
    {"peft_head", "qwen3", kExact},
    {"peft_saved", "llama", kExact},
    {"peft_saved_layer", "llama_bias", kExact},
    {"peft_lora_bias", "llama_bias", kExact},
    {"peft_bias_all", "llama_bias", kExact},
    {"peft_bias_own", "qwen2", kExact},
    {"peft_dora", "llama_bias", kExact},
    {"peft_dora_rs", "llama", kExact},
    {"peft_nested", "gemma3_nested", kExact},
    {"mlx_dora_embedding", "qwen3", kExact},
    {"peft_dora_embedding", "qwen3", kExact},
    {"peft_norms", "qwen3", kExact},
    {"peft_gemma_norms", "gemma3", kExact},
    {"peft_final_norm", "llama", kExact},
};

std::filesystem::path golden_dir() {
  return std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden";
}

class AdapterGolden : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    loaded_ = load::load_checkpoint(golden_dir() / GetParam().base);
    adapter_ = load_adapter(dir(), model());
    auto golden = mx::load_safetensors((dir() / "golden.safetensors").string()).first;
    auto ids = golden.at("ids");
    auto logits = mx::contiguous(golden.at("logits"));
    mx::eval(ids, logits);
    ids_.assign(ids.data<int>(), ids.data<int>() + ids.size());
    golden_.assign(logits.data<float>(), logits.data<float>() + logits.size());
  }

  static std::filesystem::path dir() { return golden_dir() / "adapters" / GetParam().name; }

  const models::Model& model() const { return *loaded_.model; }

  load::LoadedCheckpoint loaded_;
  std::shared_ptr<const nn::Adapter> adapter_;
  std::vector<int> ids_;
  Logits golden_;
};

TEST_P(AdapterGolden, LogitsAreTheReferences) {
  const auto vocab = static_cast<std::size_t>(model().info().vocab_size);
  const auto base = run_alone(model(), {}, ids_);
  const auto adapted = run_alone(model(), {adapter_}, ids_);
  const double difference = mean_difference(adapted, golden_, vocab);
  EXPECT_LT(difference, GetParam().tolerance);
  EXPECT_GT(mean_difference(base, golden_, vocab), 10 * GetParam().tolerance);
  RecordProperty("mean_difference", fmt::format("{:.1e}", difference));
}

// Base, fine-tune and other strengths in one pass give the bits that each gives alone; strength 0
// gives the base's.
TEST_P(AdapterGolden, RowsAreIndependent) {
  const auto base = run_alone(model(), {}, ids_);
  const auto adapted = run_alone(model(), {adapter_}, ids_);
  const auto half = run_alone(model(), {adapter_, 0.5F}, ids_);
  EXPECT_TRUE(same_bits(run_alone(model(), {adapter_, 0.0F}, ids_), base));
  EXPECT_FALSE(same_bits(half, base));
  EXPECT_FALSE(same_bits(half, adapted));
  View views[] = {
      View(model(), {adapter_}),
      View(model()),
      View(model(), {adapter_, 0.5F}),
      View(model(), {adapter_}),
      View(model(), {adapter_, 0.0F}),
  };
  std::size_t done = 0;
  for (const std::size_t rows : {std::size_t{1}, std::size_t{4}, ids_.size() - 5}) {
    run_pass(
        model(),
        {&views[0], &views[1], &views[2], &views[3], &views[4]},
        std::span(ids_).subspan(done, rows)
    );
    done += rows;
  }
  EXPECT_TRUE(same_bits(views[0].logits, adapted));
  EXPECT_TRUE(same_bits(views[1].logits, base));
  EXPECT_TRUE(same_bits(views[2].logits, half));
  EXPECT_TRUE(same_bits(views[3].logits, adapted));
  EXPECT_TRUE(same_bits(views[4].logits, base));
}

INSTANTIATE_TEST_SUITE_P(All, AdapterGolden, ::testing::ValuesIn(kCases), [](const auto& test) {
  return std::string(test.param.name);
});

std::shared_ptr<const nn::Adapter> golden_adapter(
    std::string_view name, const models::Model& model
) {
  return load_adapter(golden_dir() / "adapters" / name, model);
}

TEST(Adapter, SaysWhereItBegins) {
  const auto llama = load::load_checkpoint(golden_dir() / "llama");
  EXPECT_EQ(golden_adapter("mlx_lora_last", *llama.model)->first_layer(), 1);
  EXPECT_EQ(golden_adapter("peft_llama", *llama.model)->first_layer(), 0);
  EXPECT_EQ(golden_adapter("peft_saved", *llama.model)->first_layer(), -1);
}

TEST(Adapter, IdentityTellsWeightsAndStrengthsApart) {
  const auto llama = load::load_checkpoint(golden_dir() / "llama");
  const auto one = golden_adapter("peft_llama", *llama.model);
  const auto again = golden_adapter("peft_llama", *llama.model);
  const auto other = golden_adapter("peft_dora_rs", *llama.model);
  EXPECT_EQ(nn::adapter_identity({one}), nn::adapter_identity({again}));
  EXPECT_NE(nn::adapter_identity({one}), nn::adapter_identity({other}));
  EXPECT_NE(nn::adapter_identity({one}), nn::adapter_identity({one, 0.5F}));
  EXPECT_EQ(nn::adapter_identity({one, 0.0F}), "");
  EXPECT_EQ(nn::adapter_identity({}), "");
}

// The work of different adapters in one pass.
TEST(Adapter, SeveralShareAPass) {
  const auto llama = load::load_checkpoint(golden_dir() / "llama");
  const std::vector<int> ids = {3, 14, 15, 92, 65};
  const nn::AdapterUse uses[] = {
      {golden_adapter("peft_llama", *llama.model)},
      {golden_adapter("peft_saved", *llama.model), 0.7F},
      {golden_adapter("peft_dora_rs", *llama.model), -1.0F},
  };
  std::vector<View> views;
  views.reserve(4);
  for (const int use : {0, 1, 2, 0}) {
    views.emplace_back(*llama.model, uses[use]);
  }
  run_pass(*llama.model, {&views[0], &views[1], &views[2], &views[3]}, ids);
  for (const View& view : views) {
    EXPECT_TRUE(same_bits(view.logits, run_alone(*llama.model, view.adapter, ids)));
  }
}

}  // namespace
}  // namespace saker::adapters

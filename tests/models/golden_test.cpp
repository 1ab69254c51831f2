// SPDX-License-Identifier: Apache-2.0
// Every architecture against logits, layer rows and greedy tokens that tools/make_goldens.py
// computed in float32.
#include "saker/kernels/gpu/backend.h"
#include "saker/load/checkpoint.h"

#include "tests/models/random_model.h"
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <ostream>
#include <string_view>
#include <tuple>

namespace saker::models {
namespace {

constexpr int kPrompt = 8;

struct Case {
  std::string_view name;
  float tolerance;  // Of logits and layer rows.

  friend std::ostream& operator<<(std::ostream& out, const Case& self) { return out << self.name; }
};

constexpr float kExact = 3e-5F;
// Rows of the cache and operands of products are bf16.
constexpr float kHalf = 0.08F;
// The same where scores of heads are not scaled down, or scaled up, so that softmax shows it more.
constexpr float kSharp = 0.5F;

constexpr Case kCases[] = {
    {"llama", kExact},
    {"llama_bias", kExact},
    {"llama_layers", kExact},
    {"llama_f16", kHalf},
    {"mistral", kExact},
    {"qwen2", kExact},
    {"qwen2_window", kExact},
    {"qwen3", kExact},
    {"qwen3_yarn", kExact},
    {"qwen3_bf16", kHalf},
    {"qwen3_q4", kHalf},
    {"qwen3_q8", kHalf},
    {"qwen3_mixed", kHalf},
    {"qwen3_moe", kExact},
    {"qwen3_moe_single", kExact},
    {"qwen3_moe_q4", kHalf},
    {"qwen3_5", kExact},
    {"qwen3_5_published", kExact},
    {"gemma", kExact},
    {"gemma2", kExact},
    {"gemma3", kExact},
    {"gemma3_nested", kExact},
    {"gemma4", kExact},
    {"gemma4_small", kExact},
    {"gemma4_small_q4", kSharp},
    {"cohere2", kExact},
    {"ernie4_5", kExact},
    {"exaone4", kExact},
    {"granite", kExact},
    {"hunyuan_v1_dense", kExact},
    {"ministral3", kExact},
    {"mistral3", kExact},
    {"olmo2", kExact},
    {"olmo3", kExact},
    {"phi3", kExact},
    {"phi3_window", kExact},
    {"deepseek_v2", kExact},
    {"deepseek_v3", kExact},
    {"deepseek_v3_single", kExact},
    {"deepseek_v3_q4", kSharp},
    {"glm4_moe_lite", kExact},
    {"kimi_k25", kExact},
    {"bailing_moe", kExact},
    {"bailing_moe_v2", kExact},
    {"bailing_moe_v2_mlx", kExact},
    {"bailing_hybrid", kExact},
    {"bailing_hybrid_mlx", kExact},
    {"kimi_linear", kExact},
    {"kimi_linear_mlx", kExact},
    {"kimi_linear_q4", kSharp},
    {"qwen3_vl", kExact},
    {"seed_oss", kExact},
    {"smollm3", kExact},
    {"lfm2", kExact},
    {"lfm2_bias", kExact},
    {"granitemoehybrid", kExact},
    {"granitemoehybrid_mlx", kExact},
    {"nemotron_h", kExact},
    {"granitemoehybrid_moe", kExact},
    {"granitemoehybrid_moe_mlx", kExact},
    {"nemotron_h_moe", kExact},
    {"nemotron_h_latent", kExact},
    {"lfm2_moe", kExact},
    {"lfm2_moe_mlx", kExact},
    {"cohere2_moe", kExact},
    {"dots1", kExact},
    {"ernie4_5_moe", kExact},
    {"glm4_moe", kExact},
    {"granitemoe", kExact},
    {"hunyuan_v1_moe", kExact},
    {"minimax_m2", kExact},
    {"mixtral", kExact},
    {"mixtral_window", kExact},
    {"olmoe", kExact},
    {"qwen2_moe", kExact},
    {"qwen3_5_moe", kExact},
    {"qwen3_5_moe_published", kExact},
    {"qwen3_next", kExact},
    {"qwen3_next_published", kExact},
    {"qwen3_vl_moe", kExact},
    {"mistral4", kExact},
    {"gpt_oss", kExact},
    {"gpt_oss_published", kExact},
    {"gpt_oss_mxfp4", kSharp},
    {"gemma4_moe", kExact},
    {"gemma4_moe_published", kExact},
    {"afmoe", kExact},
    {"afmoe_mlx", kExact},
    {"apertus", kExact},
    {"falcon_h1", kExact},
    {"falcon_h1_mlx", kExact},
    {"falcon_h1_norm", kExact},
    {"laguna", kExact},
    {"laguna_elements", kExact},
    {"laguna_mlx", kExact},
    {"llama4", kExact},
    {"llama4_text", kExact},
    {"llama4_usual", kExact},
    {"mimo", kExact},
};

std::vector<int> to_ints(const mx::array& array) {
  auto evaluated = mx::contiguous(array);
  mx::eval(evaluated);
  return {evaluated.data<int>(), evaluated.data<int>() + evaluated.size()};
}

float difference(const mx::array& a, const mx::array& b) {
  EXPECT_EQ(a.shape(), b.shape());
  return mx::max(mx::abs(mx::subtract(a, b))).item<float>();
}

// The largest Kullback-Leibler divergence of a token's distribution from the reference's, in nats.
float divergence(const mx::array& logits, const mx::array& reference) {
  const auto log_probs = [](const mx::array& x) {
    return mx::subtract(x, mx::logsumexp(x, -1, true));
  };
  const auto truth = log_probs(reference);
  const auto terms = mx::multiply(mx::exp(truth), mx::subtract(truth, log_probs(logits)));
  return mx::max(mx::sum(terms, -1)).item<float>();
}

// With our own bodies, or with MLX's operations as on a GPU.
enum class Path : std::uint8_t { kOwn, kPlain };

class Golden : public ::testing::TestWithParam<std::tuple<Case, Path>> {
 protected:
  void SetUp() override {
    kernels::pretend_gpu(std::get<Path>(GetParam()) == Path::kPlain);
    const auto dir = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden" / kind().name;
    loaded_ = load::load_checkpoint(dir);
    for (auto& [name, array] : mx::load_safetensors((dir / "golden.safetensors").string()).first) {
      golden_.emplace(name, array);
    }
  }

  void TearDown() override { kernels::pretend_gpu(false); }

  static Case kind() { return std::get<Case>(GetParam()); }

  static float tolerance() {
    // Quantized products of MLX on CPU add in bf16 where rows are bf16.
    const float wider = kind().tolerance == kExact ? 2.0F : 4.0F;
    return std::get<Path>(GetParam()) == Path::kOwn ? kind().tolerance : wider * kind().tolerance;
  }

  // Twice to five times the largest divergence of these models, in nats.
  static float most_divergence() {
    const bool is_own = std::get<Path>(GetParam()) == Path::kOwn;
    if (kind().tolerance == kExact) {
      return 5e-6F;
    }
    if (kind().tolerance == kHalf) {
      return is_own ? 1e-3F : 0.02F;
    }
    return is_own ? 4e-3F : 0.1F;
  }

  const Model& model() const { return *loaded_.model; }

  const mx::array& golden(const std::string& name) const { return golden_.at(name); }

 private:
  load::LoadedCheckpoint loaded_;
  std::map<std::string, mx::array> golden_;
};

TEST_P(Golden, EveryTensorIsUsed) {
  const auto dir = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden" / kind().name;
  EXPECT_EQ(fmt::format("{}", fmt::join(load::load_checkpoint(dir).warnings, "; ")), "");
}

TEST_P(Golden, LogitsAndLayerRows) {
  const auto ids = to_ints(golden("ids"));
  auto cache = model().make_cache({});
  nn::ForwardContext context({{&cache, static_cast<int>(ids.size())}});
  for (int layer = -1; layer < model().info().layer_count; ++layer) {
    context.captured_layers.push_back(layer);
  }
  const auto logits = model().unembed(model().forward(golden("ids"), context), context.adapters());
  for (const int layer : context.captured_layers) {
    const auto name = fmt::format("tap.{}", layer);
    EXPECT_LT(difference(context.captured.at(layer), golden(name)), tolerance()) << name;
  }
  const auto largest = difference(logits, golden("logits"));
  if (std::get<Path>(GetParam()) == Path::kOwn) {
    EXPECT_LT(largest, tolerance());
  }
  const auto nats = divergence(logits, golden("logits"));
  EXPECT_LT(nats, most_divergence());
  RecordProperty("divergence", fmt::format("{:.1e}", nats));
  RecordProperty("largest_difference", fmt::format("{:.1e}", largest));
}

TEST_P(Golden, GreedyTokensOneByOne) {
  auto ids = to_ints(golden("ids"));
  ids.resize(kPrompt);
  auto cache = model().make_cache({});
  std::vector<int> tokens;
  const auto wanted = to_ints(golden("greedy"));
  while (tokens.size() < wanted.size()) {
    const auto logits = run_rows(model(), cache, ids);
    const auto last = mx::slice(logits, {logits.shape(0) - 1, 0}, logits.shape());
    tokens.push_back(static_cast<int>(mx::argmax(last).item<std::uint32_t>()));
    ids = {tokens.back()};
  }
  EXPECT_EQ(tokens, wanted);
}

INSTANTIATE_TEST_SUITE_P(
    All,
    Golden,
    ::testing::Combine(::testing::ValuesIn(kCases), ::testing::Values(Path::kOwn, Path::kPlain)),
    [](const auto& test) {
      const bool plain = std::get<Path>(test.param) == Path::kPlain;
      return std::string(std::get<Case>(test.param).name) + (plain ? "_plain" : "");
    }
);

}  // namespace
}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
// Adapters written in the other tool's form, and adapters of noise.
#include "saker/adapters/save.h"

#include "saker/adapters/bind.h"
#include "saker/adapters/null_adapter.h"
#include "saker/base/json/json.h"
#include "saker/load/files/safetensors.h"

#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>

namespace saker::adapters {
namespace {

using saker::testing::expect_error;
using saker::testing::TemporaryDir;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

AdapterSource golden(std::string_view name) {
  return read_adapter(std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/adapters" / name);
}

// scale * up down of a pair, whatever ranks it is written with.
std::vector<float> product(const LowRank& pair) {
  const Tensor down = pair.down;
  const auto a = to_floats(down);
  const auto b = to_floats(pair.up);
  const auto rank = static_cast<std::size_t>(pair.up.shape[1]);
  const auto outputs = static_cast<std::size_t>(pair.up.shape[0]);
  const auto inputs = a.size() / rank;
  std::vector<float> result(outputs * inputs, 0.0F);
  for (std::size_t n = 0; n < outputs; ++n) {
    for (std::size_t k = 0; k < inputs; ++k) {
      double sum = 0.0;
      for (std::size_t r = 0; r < rank; ++r) {
        sum += static_cast<double>(b[n * rank + r]) *
               static_cast<double>(pair.embedding ? a[k * rank + r] : a[r * inputs + k]);
      }
      result[n * inputs + k] = static_cast<float>(sum * static_cast<double>(pair.scale));
    }
  }
  return result;
}

void expect_same_products(const AdapterSource& one, const AdapterSource& other) {
  for (const auto& [name, module] : one.modules) {
    if (!module.low_rank) {
      continue;
    }
    ASSERT_TRUE(other.modules.contains(name)) << name;
    const auto expected = product(*module.low_rank);
    const auto got = product(*other.modules.at(name).low_rank);
    ASSERT_EQ(got.size(), expected.size()) << name;
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_NEAR(got[i], expected[i], 1e-5F) << name << " " << i;
    }
    EXPECT_EQ(
        module.low_rank->magnitude.has_value(),
        other.modules.at(name).low_rank->magnitude.has_value()
    );
  }
}

TEST(SaveAdapter, PeftBecomesMlx) {
  for (const auto* name : {"peft_llama", "peft_qwen2", "peft_patterns", "peft_dora"}) {
    const TemporaryDir dir;
    const auto source = golden(name);
    const auto report = save_mlx(source, dir.path());
    EXPECT_EQ(report.converted.size(), source.modules.size()) << name;
    EXPECT_THAT(report.skipped, ElementsAre());
    expect_same_products(source, read_adapter(dir.path()));
  }
}

TEST(SaveAdapter, MlxBecomesPeft) {
  for (const auto* name : {"mlx_lora", "mlx_lora_embedding", "mlx_dora", "peft_patterns"}) {
    const TemporaryDir dir;
    const auto source = golden(name);
    save_peft(source, dir.path());
    expect_same_products(source, read_adapter(dir.path()));
  }
}

TEST(SaveAdapter, ConfigurationAndReport) {
  const TemporaryDir dir;
  const auto report = save_mlx(golden("peft_llama"), dir.path());
  EXPECT_EQ(report.tensors, 28U);  // 2 layers x 7 modules x 2.
  const Json config = read_json_file(dir.path() / "adapter_config.json");
  EXPECT_EQ(config["fine_tune_type"], "lora");
  EXPECT_EQ(config["num_layers"], 2);
  EXPECT_EQ(config["lora_parameters"]["rank"], 4);
  EXPECT_EQ(config["lora_parameters"]["scale"], 1.5);
  EXPECT_EQ(config["lora_parameters"]["keys"][0], "mlp.down_proj");

  const auto saved = save_mlx(golden("peft_saved"), dir.path() / "saved");
  EXPECT_THAT(
      saved.skipped, ElementsAre(HasSubstr("embed_tokens: a replaced weight"), HasSubstr("lm_head"))
  );
  // Only layer 1: mlx-lm's count from the end can't say that.
  save_mlx(golden("peft_layers"), dir.path() / "layers");
  EXPECT_EQ(read_json_file(dir.path() / "layers" / "adapter_config.json")["num_layers"], -1);
}

TEST(SaveAdapter, LeavesWhatIsThere) {
  const TemporaryDir dir;
  const auto file = dir.write("adapter_model.safetensors", "trained for days");
  for (const auto& save : {save_mlx, save_peft}) {
    expect_error(ErrorCode::kInvalidArgument, {dir.path().string()}, [&] {
      save(golden("peft_llama"), dir.path());
    });
  }
  EXPECT_EQ(std::filesystem::file_size(file), 16U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

// PEFT's with these alphas of modules, in this order.
AdapterSource with_alphas(const Json& alphas) {
  const TemporaryDir dir;
  const auto original =
      std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/adapters/peft_llama";
  Json config = read_json_file(original / "adapter_config.json");
  config["alpha_pattern"] = alphas;
  dir.write("adapter_config.json", config.dump());
  std::filesystem::copy(original / "adapter_model.safetensors", dir.path());
  return read_adapter(dir.path());
}

// The first pattern that fits a module counts.
TEST(AdapterIdentity, FollowsTheOrderOfPatterns) {
  const auto one = with_alphas({{"q_proj", 4}, {"layers.0.self_attn.q_proj", 64}});
  const auto other = with_alphas({{"layers.0.self_attn.q_proj", 64}, {"q_proj", 4}});
  const auto scale_of = [](const AdapterSource& source) {
    return source.modules.at("layers.0.self_attn.q_proj").low_rank->scale;
  };
  EXPECT_EQ(scale_of(one), 1.0F);
  EXPECT_EQ(scale_of(other), 16.0F);
  EXPECT_NE(one.identity, other.identity);
}

TEST(SaveAdapter, RefusesScalesThatNoFloatHolds) {
  const TemporaryDir dir;
  expect_error(ErrorCode::kCorruptData, {"q_proj", "1e+300"}, [] {
    with_alphas({{"q_proj", 4e300}});
  });
  const auto wide = with_alphas({{"q_proj", 4e30}, {"down_proj", 4e-30}});
  expect_error(ErrorCode::kUnsupported, {"its scale is"}, [&] { save_mlx(wide, dir.path()); });
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

// mlx-lm has a magnitude for each token, PEFT one for each number of a row.
TEST(SaveAdapter, DoraOfAnEmbeddingHasNoPlaceInTheOtherForm) {
  const TemporaryDir dir;
  const auto mlx = save_mlx(golden("peft_dora_embedding"), dir.path() / "mlx");
  EXPECT_THAT(mlx.skipped, Contains(HasSubstr("embed_tokens: magnitudes (DoRA)")));
  EXPECT_THAT(mlx.converted, Not(Contains(HasSubstr("embed_tokens"))));
  EXPECT_FALSE(read_adapter(dir.path() / "mlx").modules.contains("embed_tokens"));
  const auto peft = save_peft(golden("mlx_dora_embedding"), dir.path() / "peft");
  EXPECT_THAT(peft.skipped, ElementsAre(HasSubstr("embed_tokens: magnitudes (DoRA)")));
  EXPECT_FALSE(read_adapter(dir.path() / "peft").modules.contains("embed_tokens"));
}

TEST(SaveAdapter, SaysWhatAHeadOfTheEmbeddingsWeightDoes) {
  const TemporaryDir dir;
  const auto mlx = save_mlx(golden("peft_embedding"), dir.path() / "mlx");
  EXPECT_THAT(mlx.notes, ElementsAre(HasSubstr("embed_tokens: in mlx-lm a head")));
  const auto peft = save_peft(golden("mlx_lora_embedding"), dir.path() / "peft");
  EXPECT_THAT(peft.notes, ElementsAre(HasSubstr("embed_tokens: in PEFT a head")));
  EXPECT_THAT(save_mlx(golden("mlx_lora_embedding"), dir.path() / "same").notes, ElementsAre());
  EXPECT_THAT(save_mlx(golden("peft_llama"), dir.path() / "plain").notes, ElementsAre());
}

TEST(NullAdapter, IsNoiseOfTheAskedSize) {
  const auto source = golden("peft_llama");
  const auto null = null_adapter(source, {.seed = 3, .init_scale = 0.5, .rank_scale = 4.0});
  ASSERT_EQ(null.modules.size(), source.modules.size());
  double sum = 0.0;
  double squares = 0.0;
  std::size_t count = 0;
  for (const auto& [name, module] : null.modules) {
    EXPECT_EQ(module.low_rank->scale, source.modules.at(name).low_rank->scale);
    EXPECT_EQ(module.low_rank->down.shape, source.modules.at(name).low_rank->down.shape);
    for (const Tensor* tensor : {&module.low_rank->down, &module.low_rank->up}) {
      for (const float value : to_floats(*tensor)) {
        sum += static_cast<double>(value);
        squares += static_cast<double>(value) * static_cast<double>(value);
        ++count;
      }
    }
  }
  EXPECT_NEAR(sum / static_cast<double>(count), 0.0, 0.05);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(count)), 1.0, 0.05);
}

TEST(NullAdapter, SeedsAndSizesAreTheirIdentity) {
  const auto source = golden("peft_llama");
  const auto first = [](const AdapterSource& adapter) {
    return to_floats(adapter.modules.begin()->second.low_rank->down);
  };
  const auto one = null_adapter(source, {.seed = 1});
  EXPECT_EQ(first(one), first(null_adapter(source, {.seed = 1})));
  EXPECT_EQ(one.identity, null_adapter(source, {.seed = 1}).identity);
  const auto other = null_adapter(source, {.seed = 2});
  EXPECT_NE(first(one), first(other));
  EXPECT_NE(one.identity, other.identity);
  EXPECT_NE(one.identity, null_adapter(source, {.seed = 1, .rank_scale = 1.001}).identity);
  // The first numbers of seed 1: the same on every machine.
  EXPECT_FLOAT_EQ(first(one)[0], -0.000787999135F);
}

TEST(NullAdapter, RefusesSizesThatMeanNothing) {
  const auto source = golden("peft_llama");
  for (const double scale : {0.0, -1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    expect_error(ErrorCode::kInvalidArgument, {"rank_scale"}, [&] {
      null_adapter(source, {.rank_scale = scale});
    });
  }
  expect_error(ErrorCode::kInvalidArgument, {"init_scale"}, [&] {
    null_adapter(source, {.init_scale = std::nan("")});
  });
}

}  // namespace
}  // namespace saker::adapters

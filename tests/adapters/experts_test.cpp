// SPDX-License-Identifier: Apache-2.0
// Adapters on experts: PEFT's form beside mlx-lm's, and what is refused.
#include "saker/adapters/adapter_source.h"
#include "saker/adapters/bind.h"
#include "saker/adapters/expert_modules.h"
#include "saker/adapters/source_parts.h"
#include "saker/load/checkpoint.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/files/safetensors_writer.h"

#include "tests/adapters/logits.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace saker::adapters {
namespace {

using saker::testing::expect_error;
using saker::testing::TemporaryDir;
using testing::run_alone;
using testing::same_bits;

const std::vector<int> kIds = {3, 14, 15, 92, 65, 35, 89, 79};

std::filesystem::path golden_dir() {
  return std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden";
}

// mlx-lm's adapter as PEFT has it: each expert is a module.
std::filesystem::path as_peft(const std::filesystem::path& folder, const AdapterSource& source) {
  load::NamedTensors tensors;
  for (const auto& [name, module] : source.modules) {
    const std::string path = fmt::format("base_model.model.{}", module.name);
    tensors.emplace_back(path + ".lora_A.weight", module.low_rank->down);
    tensors.emplace_back(path + ".lora_B.weight", module.low_rank->up);
  }
  load::write_safetensors(folder / "adapter_model.safetensors", tensors, {});
  const Json config{
      {"peft_type", "LORA"}, {"r", 4}, {"lora_alpha", 6}, {"target_modules", {"v_proj"}}
  };
  std::ofstream(folder / "adapter_config.json") << config.dump();
  return folder;
}

TEST(ExpertAdapters, PeftsFormHasTheBitsOfMlxs) {
  for (const char* base : {"qwen3_moe", "qwen3_moe_single"}) {
    const std::string suffix = base == std::string("qwen3_moe") ? "" : "_single";
    const auto dir = golden_dir() / "adapters" / ("mlx_lora_experts" + suffix);
    const auto loaded = load::load_checkpoint(golden_dir() / base);
    const TemporaryDir folder;
    const auto peft = load_adapter(as_peft(folder.path(), read_adapter(dir)), *loaded.model);
    const auto mlx = load_adapter(dir, *loaded.model);
    EXPECT_TRUE(
        same_bits(run_alone(*loaded.model, {peft}, kIds), run_alone(*loaded.model, {mlx}, kIds))
    ) << base;
    EXPECT_EQ(peft->first_layer(), mlx->first_layer());
    EXPECT_GT(peft->nbytes(), 0U);
  }
}

// Other experts keep the base's bits where they are chosen alone.
TEST(ExpertAdapters, SomeExpertsMayChange) {
  const auto loaded = load::load_checkpoint(golden_dir() / "qwen3_moe");
  auto source = read_adapter(golden_dir() / "adapters/mlx_lora_experts");
  const auto all = bind(source, *loaded.model);
  std::erase_if(source.modules, [](const auto& module) {
    return !module.first.ends_with("experts.1.up_proj");
  });
  ASSERT_FALSE(source.modules.empty());
  for (auto& [name, module] : source.modules) {  // A smaller rank than the others have.
    module.low_rank->down = rows_of(module.low_rank->down, 0, 2);
    module.low_rank->up = transposed(rows_of(transposed(module.low_rank->up), 0, 2));
  }
  const auto some = bind(source, *loaded.model);
  const auto base = run_alone(*loaded.model, {}, kIds);
  const auto changed = run_alone(*loaded.model, {some}, kIds);
  EXPECT_FALSE(same_bits(changed, base));
  EXPECT_FALSE(same_bits(changed, run_alone(*loaded.model, {all}, kIds)));
}

TEST(ExpertAdapters, NamesOfSingleExperts) {
  EXPECT_EQ(single_expert("layers.0.mlp.switch_mlp.up_proj", 3), "layers.0.mlp.experts.3.up_proj");
  EXPECT_EQ(single_expert("layers.0.experts.switch_glu.up_proj", 3), "layers.0.experts.3.up_proj");
  EXPECT_EQ(single_expert("layers.0.mlp.experts.up_proj", 0), "layers.0.mlp.experts.0.up_proj");
  EXPECT_TRUE(is_single_expert("model.layers.0.mlp.experts.12.up_proj"));
  EXPECT_FALSE(is_single_expert("model.layers.0.mlp.up_proj"));
  EXPECT_FALSE(is_single_expert("model.layers.0.mlp.experts.x.up_proj"));
  EXPECT_FALSE(is_single_expert("up_proj"));
}

TEST(ExpertAdapters, OtherChangesAreRefused) {
  const auto loaded = load::load_checkpoint(golden_dir() / "qwen3_moe");
  const auto source = read_adapter(golden_dir() / "adapters/mlx_lora_experts");
  const auto refuse = [&](ErrorCode code, const auto& damage) {
    AdapterSource bad = source;
    const auto expert = bad.modules.find("layers.0.mlp.experts.1.up_proj");
    ASSERT_NE(expert, bad.modules.end());
    damage(expert->second);
    expect_error(code, {"experts.1.up_proj"}, [&] { bind(bad, *loaded.model); });
  };
  refuse(ErrorCode::kUnsupported, [](ModuleSource& module) {
    module.low_rank->magnitude = module.low_rank->up;
  });
  refuse(ErrorCode::kUnsupported, [](ModuleSource& module) {
    module.weight = module.low_rank->up;
  });
  refuse(ErrorCode::kInvalidArgument, [](ModuleSource& module) {
    module.low_rank->down.shape = {module.low_rank->down.shape[1], module.low_rank->down.shape[0]};
  });
  AdapterSource many = source;
  many.modules["layers.0.mlp.experts.6.up_proj"] =
      source.modules.at("layers.0.mlp.experts.1.up_proj");
  many.modules["layers.0.mlp.experts.6.up_proj"].name = "layers.0.mlp.experts.6.up_proj";
  expect_error(ErrorCode::kInvalidArgument, {"experts.6.up_proj"}, [&] {
    bind(many, *loaded.model);
  });
}

}  // namespace
}  // namespace saker::adapters

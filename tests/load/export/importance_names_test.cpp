// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/importance_names.h"

#include "tests/models/random_model.h"
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {
namespace {

std::string name_of(const ImportanceNames& names, std::string_view module) {
  return names.place(module, {.sums = {1.0F}, .counts = {1.0F}}).name;
}

TEST(ImportanceNames, AreThoseOfGgufFiles) {
  Json config = models::small_config("qwen3_moe");
  config["norm_topk_prob"] = true;
  const ImportanceNames names(config);
  EXPECT_EQ(name_of(names, "model.layers.1.self_attn.q_proj"), "blk.1.attn_q.weight");
  EXPECT_EQ(name_of(names, "model.layers.0.mlp.gate"), "blk.0.ffn_gate_inp.weight");
  EXPECT_EQ(
      name_of(names, "model.layers.0.mlp.switch_mlp.down_proj"), "blk.0.ffn_down_exps.weight"
  );
  EXPECT_EQ(name_of(names, "lm_head"), "output.weight");
}

// Checkpoints of larger models, and bare ones, have other scopes.
TEST(ImportanceNames, DoNotDependOnScopes) {
  const ImportanceNames names(models::small_config("qwen3"));
  for (const std::string scope :
       {"model.", "language_model.model.", "model.language_model.", "language_model.", ""}) {
    EXPECT_EQ(name_of(names, scope + "layers.1.mlp.up_proj"), "blk.1.ffn_up.weight") << scope;
  }
}

TEST(ImportanceNames, KeepTheFoldersNameOfOtherModules) {
  const ImportanceNames names(models::small_config("qwen3"));
  EXPECT_EQ(
      name_of(names, "model.layers.0.self_attn.z_proj"), "model.layers.0.self_attn.z_proj.weight"
  );
  // GGUF files cannot describe experts' weights that do not sum to 1.
  Json config = models::small_config("qwen3_moe");
  config["norm_topk_prob"] = false;
  const ImportanceNames others(config);
  EXPECT_EQ(
      name_of(others, "model.layers.0.self_attn.q_proj"), "model.layers.0.self_attn.q_proj.weight"
  );
}

// Files have the value heads of linear attention in another order: by repeat, then key head.
TEST(ImportanceNames, MoveColumnsAsTheFileHasThem) {
  Json config = models::small_config("qwen3_5");  // Two key heads, four value heads.
  config["linear_value_head_dim"] = 6;
  ImportanceEntry entry{.sums = std::vector<float>(24), .counts = {1.0F}};
  std::iota(entry.sums.begin(), entry.sums.end(), 0.0F);
  const auto placed = ImportanceNames(config).place("model.layers.0.linear_attn.out_proj", entry);
  EXPECT_EQ(placed.name, "blk.0.ssm_out.weight");
  std::vector<float> firsts;
  for (std::size_t head = 0; head < 4; ++head) {
    firsts.push_back(placed.entry.sums[head * 6]);
  }
  EXPECT_EQ(firsts, (std::vector<float>{0.0F, 12.0F, 6.0F, 18.0F}));
  const auto kept = ImportanceNames(config).place("model.layers.0.linear_attn.in_proj_z", entry);
  EXPECT_EQ(kept.name, "blk.0.attn_gate.weight");
  EXPECT_EQ(kept.entry, entry);
}

// The inverse of place(), for files of llama.cpp and ours.
TEST(ImportanceNames, FindTheModulesOfAFile) {
  Json config = models::small_config("qwen3_5");
  config["linear_value_head_dim"] = 6;
  const ImportanceNames names(config);
  ImportanceEntry entry{.sums = std::vector<float>(24), .counts = {1.0F}};
  std::iota(entry.sums.begin(), entry.sums.end(), 0.0F);
  ImportanceFile file;
  for (const std::string module :
       {"layers.0.linear_attn.out_proj", "layers.1.mlp.up_proj", "other"}) {
    auto placed = names.place(module, entry);
    file.entries.emplace(std::move(placed.name), std::move(placed.entry));
  }
  const auto modules = names.modules(file);
  EXPECT_EQ(modules.size(), 3U);
  for (const auto& [module, means] : modules) {
    EXPECT_EQ(means, entry.sums) << module;
  }
  EXPECT_TRUE(modules.contains("layers.0.linear_attn.out_proj"));
  EXPECT_TRUE(modules.contains("layers.1.mlp.up_proj"));
}

}  // namespace
}  // namespace saker::load::gguf

// SPDX-License-Identifier: Apache-2.0
// Which form a folder's adapter has, where files and settings of several tools lie together.
#include "saker/adapters/adapter_source.h"

#include "tests/support/expect_error.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_dir.h"
#include "tests/support/zip_builder.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace saker::adapters {
namespace {

using saker::testing::expect_error;
using saker::testing::f32_tensor;
using saker::testing::RawTensor;
using saker::testing::safetensors_file;
using saker::testing::TemporaryDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kRank = 2;
constexpr std::int64_t kHidden = 3;

RawTensor matrix(std::string name, std::int64_t rows, std::int64_t columns) {
  const std::vector<float> values(static_cast<std::size_t>(rows * columns), 0.5F);
  return f32_tensor(std::move(name), {rows, columns}, values);
}

std::vector<RawTensor> mlx_tensors(const std::string& module = "model.layers.0.mlp.up_proj") {
  return {
      matrix(module + ".lora_a", kHidden, kRank),
      matrix(module + ".lora_b", kRank, kHidden),
  };
}

std::vector<RawTensor> peft_tensors(const std::string& module = "model.layers.0.mlp.up_proj") {
  const std::string name = "base_model.model." + module;
  return {
      matrix(name + ".lora_A.weight", kRank, kHidden),
      matrix(name + ".lora_B.weight", kHidden, kRank),
  };
}

std::vector<RawTensor> joined(std::vector<RawTensor> one, const std::vector<RawTensor>& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

Json mlx_config() {
  return {
      {"fine_tune_type", "lora"},
      {"num_layers", 1},
      {"lora_parameters", {{"rank", kRank}, {"scale", 5.0}}},
  };
}

Json peft_config() {
  return {{"peft_type", "LORA"}, {"r", kRank}, {"lora_alpha", 6}};  // Scale 3.
}

Json both_configs() {
  Json config = mlx_config();
  config.update(peft_config());
  return config;
}

struct Folder {
  std::vector<RawTensor> mlx;
  std::vector<RawTensor> peft;
  Json config;

  AdapterSource read() const {
    const TemporaryDir dir;
    dir.write("adapter_config.json", config.dump());
    if (!mlx.empty()) {
      dir.write("adapters.safetensors", safetensors_file(mlx));
    }
    if (!peft.empty()) {
      dir.write("adapter_model.safetensors", safetensors_file(peft));
    }
    return read_adapter(dir.path());
  }
};

float scale_of(const AdapterSource& source) {
  return source.modules.at("layers.0.mlp.up_proj").low_rank->scale;
}

// Trainers that write PEFT's keys beside mlx-lm's settings, and the other way round.
TEST(AdapterForms, ForeignKeysBesideCompleteSettingsChangeNothing) {
  const auto mlx = Folder{mlx_tensors(), {}, both_configs()}.read();
  EXPECT_EQ(mlx.format, AdapterFormat::kMlx);
  EXPECT_EQ(scale_of(mlx), 5.0F);
  const auto peft = Folder{{}, peft_tensors(), both_configs()}.read();
  EXPECT_EQ(peft.format, AdapterFormat::kPeft);
  EXPECT_EQ(scale_of(peft), 3.0F);
  Json config = both_configs();
  config["peft_type"] = "LOHA";  // Nobody's business where mlx-lm's settings are whole.
  EXPECT_EQ(scale_of(Folder{mlx_tensors(), {}, config}.read()), 5.0F);
}

TEST(AdapterForms, SettingsChooseBetweenTwoFiles) {
  EXPECT_EQ(scale_of(Folder{mlx_tensors(), peft_tensors(), mlx_config()}.read()), 5.0F);
  EXPECT_EQ(scale_of(Folder{mlx_tensors(), peft_tensors(), peft_config()}.read()), 3.0F);
  // As mlx-lm, which reads the one file only.
  EXPECT_EQ(scale_of(Folder{mlx_tensors(), peft_tensors(), both_configs()}.read()), 5.0F);
}

TEST(AdapterForms, NamesOfTensorsSayWhoseTheyAre) {
  EXPECT_EQ(scale_of(Folder{peft_tensors(), {}, peft_config()}.read()), 3.0F);
  EXPECT_EQ(scale_of(Folder{{}, mlx_tensors(), mlx_config()}.read()), 5.0F);
  EXPECT_EQ(scale_of(Folder{peft_tensors(), {}, both_configs()}.read()), 3.0F);
  expect_error(ErrorCode::kCorruptData, {"lora_parameters", "peft_type"}, [] {
    return Folder{mlx_tensors(), {}, peft_config()}.read();
  });
  expect_error(ErrorCode::kUnsupported, {"peft_type", "LORA"}, [] {
    return Folder{{}, peft_tensors(), mlx_config()}.read();
  });
}

TEST(AdapterForms, PartsForImagesAreLeftOut) {
  const auto peft =
      Folder{
          {}, joined(peft_tensors(), peft_tensors("model.visual.blocks.0.attn.qkv")), peft_config()
      }
          .read();
  EXPECT_EQ(peft.modules.size(), 1U);
  EXPECT_THAT(peft.warnings, ElementsAre(HasSubstr("visual.blocks.0.attn.qkv")));
  const auto mlx =
      Folder{
          joined(mlx_tensors(), mlx_tensors("vision_tower.layers.0.self_attn.q_proj")),
          {},
          mlx_config()
      }
          .read();
  EXPECT_EQ(mlx.modules.size(), 1U);
  EXPECT_THAT(mlx.warnings, ElementsAre(HasSubstr("vision_tower.layers.0")));
  EXPECT_TRUE((Folder{mlx_tensors(), {}, mlx_config()}.read().warnings.empty()));
  // A kernel of a patch embedding has more axes than a language model's parts.
  auto patches = peft_tensors();
  patches.push_back(f32_tensor(
      "base_model.model.model.visual.patch_embed.proj.lora_A.weight", {1, 1, 1, 1, 2}, {0.5F, 0.5F}
  ));
  EXPECT_EQ(scale_of(Folder{{}, patches, peft_config()}.read()), 3.0F);
}

TEST(AdapterForms, OnlyPartsForImagesIsNoAdapterOfATextModel) {
  expect_error(ErrorCode::kUnsupported, {"only parts for images", "visual.merger"}, [] {
    return Folder{{}, peft_tensors("model.visual.merger.mlp.0"), peft_config()}.read();
  });
}

// adapters.npz, as mlx-lm wrote it before it took safetensors.
std::string npy(std::int64_t rows, std::int64_t columns) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" +
                             std::to_string(rows) + ", " + std::to_string(columns) + "), }";
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size());
  file += '\0';
  return file + header +
         saker::testing::raw_bytes(
             std::vector<float>(static_cast<std::size_t>(rows * columns), 0.5F)
         );
}

std::string former_weights() {
  return saker::testing::zip_file({
      {"model.layers.0.mlp.up_proj.lora_a.npy", npy(kHidden, kRank)},
      {"model.layers.0.mlp.up_proj.lora_b.npy", npy(kRank, kHidden)},
  });
}

TEST(AdapterForms, FormerFilesAreRead) {
  const TemporaryDir dir;
  dir.write("adapters.npz", former_weights());
  dir.write("adapter_config.json", mlx_config().dump());
  const auto former = read_adapter(dir.path());
  const auto now = Folder{mlx_tensors(), {}, mlx_config()}.read();
  EXPECT_EQ(former.format, AdapterFormat::kMlx);
  const LowRank& one = *former.modules.at("layers.0.mlp.up_proj").low_rank;
  const LowRank& other = *now.modules.at("layers.0.mlp.up_proj").low_rank;
  EXPECT_EQ(one.scale, other.scale);
  EXPECT_TRUE(std::ranges::equal(one.down.bytes(), other.down.bytes()));
  EXPECT_TRUE(std::ranges::equal(one.up.bytes(), other.up.bytes()));
}

// The scale of that time was multiplied by alpha / rank.
TEST(AdapterForms, FormerScalesAreTimesAlphaOverRank) {
  const TemporaryDir dir;
  dir.write("adapters.npz", former_weights());
  Json config = mlx_config();
  config["lora_parameters"]["alpha"] = 8;
  dir.write("adapter_config.json", config.dump());
  EXPECT_EQ(scale_of(read_adapter(dir.path())), 20.0F);
  // mlx-lm ignores it in what it reads today.
  EXPECT_EQ(scale_of(Folder{mlx_tensors(), {}, config}.read()), 5.0F);
}

TEST(AdapterForms, FormerFilesGiveWayToWhatReplacedThem) {
  const TemporaryDir dir;
  dir.write("adapters.npz", "broken");
  dir.write("adapter_config.json", mlx_config().dump());
  expect_error(ErrorCode::kCorruptData, {"adapters.npz", "zip"}, [&] { read_adapter(dir.path()); });
  dir.write("adapters.safetensors", safetensors_file(mlx_tensors()));
  EXPECT_EQ(scale_of(read_adapter(dir.path())), 5.0F);
}

}  // namespace
}  // namespace saker::adapters

// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_linear_attention.h"

#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/base/tensor.h"
#include "saker/kernels/layout/block_format.h"
#include "saker/load/checkpoint.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/gguf/blocks/gguf_types.h"
#include "saker/load/gguf/gguf_model.h"
#include "saker/load/importers/lazy_tensor.h"

#include "tests/load/gguf/small_llama.h"
#include "tests/load/golden_tensors.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load::gguf {
namespace {

using saker::testing::expect_error;
using saker::testing::GgufBuilder;
using saker::testing::TemporaryDir;

// The golden model: two key heads, two value heads for each.
constexpr std::size_t kKeyHeads = 2;
constexpr std::size_t kRepeats = 2;
constexpr std::size_t kKeyDim = 6;
constexpr std::size_t kValueDim = 10;
constexpr std::size_t kMixed = 2 * kKeyHeads * kKeyDim;  // Channels of queries and keys.

using Numbers = std::map<std::string, std::uint32_t>;

Numbers golden_keys() {
  return {
      {"block_count", 3},
      {"embedding_length", 32},
      {"feed_forward_length", 48},
      {"context_length", 512},
      {"attention.head_count", 4},
      {"attention.head_count_kv", 2},
      {"attention.key_length", 8},
      {"attention.value_length", 8},
      {"rope.dimension_count", 2},
      {"full_attention_interval", 3},
      {"ssm.conv_kernel", 4},
      {"ssm.state_size", kKeyDim},
      {"ssm.group_count", kKeyHeads},
      {"ssm.time_step_rank", kKeyHeads * kRepeats},
      {"ssm.inner_size", kKeyHeads * kRepeats * kValueDim},
  };
}

GgufBuilder with_keys(const Numbers& keys) {
  GgufBuilder builder;
  builder.string("general.architecture", "qwen35");
  for (const auto& [key, value] : keys) {
    builder.integer("qwen35." + key, value);
  }
  builder.number("qwen35.attention.layer_norm_rms_epsilon", 1e-6F)
      .number("qwen35.rope.freq_base", 100000.0F);
  return builder;
}

std::string gguf_name(const std::string& name) {
  static const std::map<std::string_view, std::string_view> kNames = {
      {"input_layernorm.weight", "attn_norm.weight"},
      {"post_attention_layernorm.weight", "post_attention_norm.weight"},
      {"linear_attn.A_log", "ssm_a"},
      {"linear_attn.conv1d.weight", "ssm_conv1d.weight"},
      {"linear_attn.dt_bias", "ssm_dt.bias"},
      {"linear_attn.in_proj_a.weight", "ssm_alpha.weight"},
      {"linear_attn.in_proj_b.weight", "ssm_beta.weight"},
      {"linear_attn.in_proj_qkv.weight", "attn_qkv.weight"},
      {"linear_attn.in_proj_z.weight", "attn_gate.weight"},
      {"linear_attn.norm.weight", "ssm_norm.weight"},
      {"linear_attn.out_proj.weight", "ssm_out.weight"},
      {"mlp.down_proj.weight", "ffn_down.weight"},
      {"mlp.gate_proj.weight", "ffn_gate.weight"},
      {"mlp.up_proj.weight", "ffn_up.weight"},
      {"self_attn.k_norm.weight", "attn_k_norm.weight"},
      {"self_attn.k_proj.weight", "attn_k.weight"},
      {"self_attn.o_proj.weight", "attn_output.weight"},
      {"self_attn.q_norm.weight", "attn_q_norm.weight"},
      {"self_attn.q_proj.weight", "attn_q.weight"},
      {"self_attn.v_proj.weight", "attn_v.weight"},
  };
  if (const auto layer = numbered_name(name, "model.layers.")) {
    return "blk." + std::to_string(layer->number) + "." + std::string(kNames.at(layer->rest));
  }
  return name == "model.norm.weight" ? "output_norm.weight" : "token_embd.weight";
}

// Heads in a converter's order: all first value heads of the key heads, then all second ones. `first`
// numbers stay, a head has `size`.
std::vector<float> tiled(const std::vector<float>& ours, std::size_t first, std::size_t size) {
  std::vector<float> file = ours;
  for (std::size_t key = 0; key < kKeyHeads; ++key) {
    for (std::size_t j = 0; j < kRepeats; ++j) {
      const std::size_t from = first + (key * kRepeats + j) * size;
      const std::size_t to = first + (j * kKeyHeads + key) * size;
      std::copy_n(ours.begin() + static_cast<std::ptrdiff_t>(from), size, file.begin() + to);
    }
  }
  return file;
}

std::vector<float> in_file(std::string_view name, std::vector<float> ours, std::size_t columns) {
  if (name.ends_with("attn_qkv.weight") || name.ends_with("ssm_conv1d.weight")) {
    return tiled(ours, kMixed * columns, kValueDim * columns);
  }
  if (name.ends_with("attn_gate.weight")) {
    return tiled(ours, 0, kValueDim * columns);
  }
  if (name.ends_with("ssm_out.weight")) {
    std::vector<float> file;
    for (std::size_t at = 0; at < ours.size(); at += columns) {
      const auto row = ours.begin() + static_cast<std::ptrdiff_t>(at);
      const auto moved = tiled({row, row + static_cast<std::ptrdiff_t>(columns)}, 0, kValueDim);
      file.insert(file.end(), moved.begin(), moved.end());
    }
    return file;
  }
  if (name.ends_with("ssm_a")) {
    for (float& value : ours) {
      value = -std::exp(value);
    }
  }
  const bool moves = name.ends_with("ssm_a") || name.ends_with("ssm_dt.bias");
  const bool moves_rows = name.ends_with("ssm_alpha.weight") || name.ends_with("ssm_beta.weight");
  return moves ? tiled(ours, 0, 1) : moves_rows ? tiled(ours, 0, columns) : ours;
}

TensorMap golden() {
  constexpr std::string_view kScope = "language_model.";
  TensorMap tensors;
  for (const auto& [name, tensor] : read_safetensors(golden_dir("qwen3_5") / "model.safetensors")) {
    tensors.emplace(name.substr(kScope.size()), tensor);
  }
  return tensors;
}

// The golden model as a converter writes it.
GgufBuilder golden_file(const Numbers& keys = golden_keys()) {
  GgufBuilder builder = with_keys(keys);
  for (const auto& [name, tensor] : golden()) {
    const std::string to = gguf_name(name);
    std::vector<std::uint64_t> shape(tensor.shape.rbegin(), tensor.shape.rend());
    if (to.ends_with("ssm_conv1d.weight")) {
      shape.erase(shape.begin());
    }
    const auto values = in_file(to, to_floats(tensor), shape.front());
    builder.tensor(to, shape, kF32, bytes_as(values, DType::kFloat32));
  }
  return builder;
}

TEST(GgufLinearAttentionTest, AConvertersFileIsTheFolder) {
  const TemporaryDir dir;
  const auto path = dir.write("model.gguf", golden_file().file());
  const auto model = open_gguf(path);
  EXPECT_EQ(model.config["model_type"], "qwen3_5");
  EXPECT_EQ(model.config["partial_rotary_factor"], 0.25);
  EXPECT_EQ(model.config["linear_num_value_heads"], 4);
  const auto tensors = importers::make_tensors(model);
  const auto expected = golden();
  ASSERT_EQ(tensors.size(), expected.size());
  for (const auto& [name, tensor] : expected) {
    ASSERT_TRUE(tensors.contains(name)) << name;
    EXPECT_EQ(tensors.at(name).shape, tensor.shape) << name;
    const auto values = to_floats(tensors.at(name));
    const auto ours = to_floats(tensor);
    if (name.ends_with("A_log")) {
      for (std::size_t i = 0; i < ours.size(); ++i) {
        EXPECT_NEAR(values[i], ours[i], 1e-6F) << name;
      }
    } else {
      EXPECT_EQ(values, ours) << name;
    }
  }
  EXPECT_NE(load_checkpoint(path).model, nullptr);
}

// A head has 128 columns, as those of published models.
constexpr std::size_t kWideDim = 128;
constexpr std::size_t kWide = kKeyHeads * kRepeats * kWideDim;

BlockModel wide_output(const TemporaryDir& dir, TensorType type, const std::string& blocks) {
  Numbers keys = golden_keys();
  keys["ssm.inner_size"] = kWide;
  GgufBuilder builder = with_keys(keys);
  builder.tensor("token_embd.weight", {32, 96}, kF32, f32(32UL * 96));
  builder.tensor("blk.0.ssm_out.weight", {kWide, 2}, static_cast<std::uint32_t>(type), blocks);
  return open_gguf_blocks(dir.write("wide.gguf", builder.file()));
}

// The file's numbers with each row's heads in our order.
std::vector<float> expected_output(TensorType type, const std::string& blocks) {
  std::vector<float> file(2 * kWide);
  to_floats(type, reinterpret_cast<const std::byte*>(blocks.data()), file.size(), file.data());
  std::vector<float> ours(file.size());
  for (std::size_t i = 0; i < file.size(); ++i) {
    const std::size_t head = i % kWide / kWideDim;
    const std::size_t from = head % kRepeats * kKeyHeads + head / kRepeats;
    ours[i] = file[i / kWide * kWide + from * kWideDim + i % kWideDim];
  }
  return ours;
}

// Blocks of 32 columns move with their heads.
TEST(GgufLinearAttentionTest, ColumnsMoveAsBlocks) {
  const TemporaryDir dir;
  const std::string blocks = q4_blocks(2 * kWide);
  const BlockModel model = wide_output(dir, TensorType::kQ40, blocks);
  const std::string path = "model.layers.0.linear_attn.out_proj";
  EXPECT_EQ(model.formats.at(path), kernels::weight_format(kernels::BlockKind::kQ40));
  const auto tensors = importers::make_tensors(model.model);
  std::vector<float> values(2 * kWide);
  to_floats(
      TensorType::kQ40, tensors.at(path + ".weight").bytes().data(), values.size(), values.data()
  );
  EXPECT_EQ(values, expected_output(TensorType::kQ40, blocks));
}

// Two heads share a block of 256 columns, so that its groups become affine ones.
TEST(GgufLinearAttentionTest, ColumnsMoveAsGroups) {
  const TemporaryDir dir;
  std::string blocks(2 * kWide / 256 * 144, '\0');
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const bool is_factor = i % 144 == 1 || i % 144 == 3;
    blocks[i] = static_cast<char>(is_factor ? 0x2c : i * 37 % 251);
  }
  const BlockModel model = wide_output(dir, TensorType::kQ4K, blocks);
  const std::string path = "model.layers.0.linear_attn.out_proj";
  EXPECT_FALSE(model.formats.contains(path));
  const auto tensors = importers::make_tensors(model.model);
  const auto words = tensors.at(path + ".weight").bytes();
  const auto scales = to_floats(tensors.at(path + ".scales"));
  const auto biases = to_floats(tensors.at(path + ".biases"));
  std::vector<float> values(2 * kWide);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const unsigned code = std::to_integer<unsigned>(words[i / 2]) >> i % 2 * 4 & 15U;
    values[i] = scales[i / 32] * static_cast<float>(code) + biases[i / 32];
  }
  EXPECT_EQ(values, expected_output(TensorType::kQ4K, blocks));
}

// The tensors of a golden head that drafts tokens, "mtp.fc.weight" and so on.
TensorMap golden_head() {
  TensorMap tensors = read_safetensors(golden_dir("mtp/qwen3_5") / "model.safetensors");
  std::erase_if(tensors, [](const auto& entry) { return !entry.first.starts_with("mtp."); });
  return tensors;
}

std::string head_name(const std::string& name) {
  static const std::map<std::string_view, std::string_view> kNames = {
      {"mtp.fc.weight", "eh_proj.weight"},
      {"mtp.norm.weight", "shared_head_norm.weight"},
      {"mtp.pre_fc_norm_embedding.weight", "enorm.weight"},
      {"mtp.pre_fc_norm_hidden.weight", "hnorm.weight"},
  };
  const auto own = kNames.find(name);
  if (own != kNames.end()) {
    return "blk.3.nextn." + std::string(own->second);
  }
  constexpr std::string_view kLayer = "mtp.layers.0.";
  return gguf_name("model.layers.3." + name.substr(kLayer.size()));
}

Numbers keys_with_head(std::uint32_t layers = 1) {
  Numbers keys = golden_keys();
  keys["block_count"] = 3 + layers;
  keys["nextn_predict_layers"] = layers;
  return keys;
}

// The golden model and the head, but for a tensor.
GgufBuilder file_with_head(std::string_view without = "") {
  GgufBuilder builder = golden_file(keys_with_head());
  for (const auto& [name, tensor] : golden_head()) {
    if (name != without) {
      builder.tensor(
          head_name(name),
          {tensor.shape.rbegin(), tensor.shape.rend()},
          kF32,
          bytes_as(to_floats(tensor), DType::kFloat32)
      );
    }
  }
  return builder;
}

TEST(GgufLinearAttentionTest, AHeadThatDraftsIsTheFolders) {
  const TemporaryDir dir;
  const auto path = dir.write("model.gguf", file_with_head().file());
  const auto model = open_gguf(path);
  EXPECT_EQ(model.config["num_hidden_layers"], 3);
  EXPECT_EQ(model.config["mtp_num_hidden_layers"], 1);
  const auto tensors = importers::make_tensors(model);
  const auto head = golden_head();
  EXPECT_EQ(tensors.size(), golden().size() + head.size());
  for (const auto& [name, tensor] : head) {
    ASSERT_TRUE(tensors.contains(name)) << name;
    EXPECT_EQ(tensors.at(name).shape, tensor.shape) << name;
    EXPECT_EQ(to_floats(tensors.at(name)), to_floats(tensor)) << name;
  }
  const auto loaded = load_checkpoint(path, {}, true);
  EXPECT_NE(loaded.mtp, nullptr);
  EXPECT_EQ(loaded.warnings, model.notes);
}

TEST(GgufLinearAttentionTest, AHeadThatLacksAPartStopsNothing) {
  const TemporaryDir dir;
  for (const auto& [name, tensor] : golden_head()) {
    const auto path = dir.write("model.gguf", file_with_head(name).file());
    const auto loaded = load_checkpoint(path, {}, true);
    EXPECT_NE(loaded.model, nullptr) << name;
    EXPECT_EQ(loaded.mtp, nullptr) << name;
    EXPECT_EQ(open_gguf(path).config.contains("mtp_num_hidden_layers"), name != "mtp.fc.weight");
  }
}

TEST(GgufLinearAttentionTest, AHeadsOtherTensorsAreLeftOut) {
  const TemporaryDir dir;
  GgufBuilder builder = file_with_head();
  builder.tensor("blk.3.nextn.embed_tokens.weight", {32, 96}, kF32, f32(32UL * 96));
  builder.tensor("blk.3.ssm_a", {4}, kF32, f32(4));
  const auto model = open_gguf(dir.write("model.gguf", builder.file()));
  ASSERT_FALSE(model.notes.empty());
  EXPECT_EQ(model.notes.back(), "2 tensors of a head that drafts tokens are not read");
  EXPECT_EQ(importers::make_tensors(model).size(), golden().size() + golden_head().size());
}

TEST(GgufLinearAttentionTest, AHeadMayHaveSeveralLayers) {
  const TemporaryDir dir;
  GgufBuilder builder = golden_file(keys_with_head(2));
  builder.tensor("blk.3.nextn.eh_proj.weight", {64, 32}, kF32, f32(64UL * 32));
  builder.tensor("blk.4.attn_norm.weight", {32}, kF32, f32(32));
  const auto model = open_gguf(dir.write("model.gguf", builder.file()));
  EXPECT_EQ(model.config["mtp_num_hidden_layers"], 2);
  EXPECT_TRUE(importers::make_tensors(model).contains("mtp.layers.1.input_layernorm.weight"));
  builder.tensor("blk.5.attn_q_norm.weight", {8}, kF32, f32(8));
  const auto path = dir.write("beyond.gguf", builder.file());
  EXPECT_TRUE(
      importers::make_tensors(open_gguf(path)).contains("model.layers.5.self_attn.q_norm.weight")
  );
}

TEST(GgufLinearAttentionTest, HeadCountsMayBeListedByLayer) {
  const TemporaryDir dir;
  Numbers keys = golden_keys();
  keys.erase("attention.head_count_kv");
  GgufBuilder builder = golden_file(keys);
  builder.integers("qwen35.attention.head_count_kv", {0, 0, 2});
  const auto model = open_gguf(dir.write("model.gguf", builder.file()));
  EXPECT_EQ(model.config["num_key_value_heads"], 2);
}

TEST(GgufLinearAttentionTest, RefusesOtherSizes) {
  const TemporaryDir dir;
  const auto expect_refused = [&](std::string_view key,
                                  std::uint32_t value,
                                  ErrorCode code,
                                  const std::vector<std::string_view>& words) {
    Numbers keys = golden_keys();
    keys[std::string(key)] = value;
    const auto path = dir.write("model.gguf", golden_file(keys).file());
    expect_error(code, words, [&] { importers::make_tensors(open_gguf(path)); });
  };
  constexpr auto kUnsupported = ErrorCode::kUnsupported;
  expect_refused("ssm.group_count", 0, kUnsupported, {"ssm.group_count", "0"});
  expect_refused("ssm.group_count", 3, kUnsupported, {"ssm.time_step_rank", "multiple of the 3"});
  expect_refused("ssm.time_step_rank", 1U << 31, kUnsupported, {"ssm.time_step_rank"});
  expect_refused("ssm.inner_size", 0, kUnsupported, {"ssm.inner_size"});
  expect_refused("ssm.inner_size", 42, kUnsupported, {"ssm.inner_size", "42"});
  expect_refused("rope.dimension_count", 9, kUnsupported, {"rope.dimension_count", "9"});
  expect_refused("nextn_predict_layers", 3, kUnsupported, {"nextn_predict_layers", "3"});
  expect_refused("ssm.inner_size", 80, ErrorCode::kCorruptData, {"rows", "value heads"});
}

TEST(GgufLinearAttentionTest, RefusesDecaysThatGrow) {
  const TemporaryDir dir;
  for (const float decay : {0.0F, 1.0F, -INFINITY, NAN}) {
    GgufBuilder builder = with_keys(golden_keys());
    builder.tensor("token_embd.weight", {32, 96}, kF32, f32(32UL * 96));
    builder.tensor("blk.0.ssm_a", {4}, kF32, bytes_as({-1, -1, decay, -1}, DType::kFloat32));
    const auto model = open_gguf(dir.write("model.gguf", builder.file()));
    expect_error(ErrorCode::kCorruptData, {"blk.0.ssm_a", "below 0"}, [&] {
      importers::make_tensors(model);
    });
  }
}

}  // namespace
}  // namespace saker::load::gguf

// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/file_tensors.h"

#include "saker/base/error.h"
#include "saker/load/gguf/gguf_config.h"
#include "saker/load/gguf/gguf_family.h"
#include "saker/load/gguf/gguf_rows.h"

#include "tests/load/export/small_configs.h"
#include "tests/load/export/written_header.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load::gguf {
namespace {

using saker::testing::expect_error;
using Shape = std::vector<std::int64_t>;

void expect_same_heads(const ValueHeads& got, const ValueHeads& expected, const std::string& what) {
  EXPECT_EQ(got.key_heads, expected.key_heads) << what;
  EXPECT_EQ(got.repeats, expected.repeats) << what;
  EXPECT_EQ(got.first, expected.first) << what;
  EXPECT_EQ(got.size, expected.size) << what;
}

// Writing and reading agree on a tensor.
void expect_pair(const ModelMetadata& model, const std::string& ours, const std::string& gguf) {
  const auto tensor = file_tensor(model, ours);
  ASSERT_TRUE(tensor.has_value()) << ours;
  EXPECT_EQ(tensor->name, gguf) << ours;
  EXPECT_EQ(tensor->role.name, ours);
  const auto roles = roles_of(header_of(builder_of(model.pairs)), *model.family, gguf);
  ASSERT_EQ(roles.size(), 1U) << gguf;
  const TensorRole& role = roles.front();
  EXPECT_EQ(role.name, ours);
  EXPECT_EQ(role.rotated_heads, tensor->role.rotated_heads) << ours;
  EXPECT_EQ(role.plus_one, tensor->role.plus_one) << ours;
  EXPECT_EQ(role.is_decay, tensor->role.is_decay) << ours;
  EXPECT_EQ(role.ends_in_one, tensor->role.ends_in_one) << ours;
  expect_same_heads(role.rows, tensor->role.rows, ours);
  expect_same_heads(role.columns, tensor->role.columns, ours);
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

TEST(FileTensorsTest, NamesTensorsAsTheReaderDoes) {
  const Pairs everywhere = {
      {"model.embed_tokens.weight", "token_embd.weight"},
      {"model.norm.weight", "output_norm.weight"},
      {"model.layers.5.input_layernorm.weight", "blk.5.attn_norm.weight"},
      {"model.layers.5.self_attn.q_proj.weight", "blk.5.attn_q.weight"},
      {"model.layers.5.self_attn.k_proj.weight", "blk.5.attn_k.weight"},
      {"model.layers.5.self_attn.v_proj.weight", "blk.5.attn_v.weight"},
      {"model.layers.5.self_attn.o_proj.weight", "blk.5.attn_output.weight"},
      {"model.layers.5.self_attn.q_proj.bias", "blk.5.attn_q.bias"},
      {"model.layers.5.self_attn.k_proj.bias", "blk.5.attn_k.bias"},
  };
  for (const auto& [family, config] : small_configs()) {
    SCOPED_TRACE(family);
    const ModelMetadata model = model_metadata(config);
    for (const auto& [ours, gguf] : everywhere) {
      expect_pair(model, ours, gguf);
    }
    if (!model.is_tied) {
      expect_pair(model, "lm_head.weight", "output.weight");
    }
  }
}

TEST(FileTensorsTest, NamesWhatFamiliesHaveOtherwise) {
  const std::string norm = "model.layers.0.post_attention_layernorm.weight";
  expect_pair(model_metadata(small_config("llama")), norm, "blk.0.ffn_norm.weight");
  expect_pair(model_metadata(small_gemma3()), norm, "blk.0.post_attention_norm.weight");
  expect_pair(
      model_metadata(small_gemma3()),
      "model.layers.0.pre_feedforward_layernorm.weight",
      "blk.0.ffn_norm.weight"
  );
  expect_pair(
      model_metadata(small_gemma3()),
      "model.layers.0.post_feedforward_layernorm.weight",
      "blk.0.post_ffw_norm.weight"
  );
  expect_pair(
      model_metadata(small_config("qwen3")),
      "model.layers.0.self_attn.q_norm.weight",
      "blk.0.attn_q_norm.weight"
  );
  const ModelMetadata moe = model_metadata(small_moe());
  expect_pair(moe, "model.layers.1.mlp.gate.weight", "blk.1.ffn_gate_inp.weight");
  expect_pair(moe, "model.layers.1.mlp.switch_mlp.up_proj.weight", "blk.1.ffn_up_exps.weight");
  const ModelMetadata vectors =
      model_metadata(small_gemma3({{"use_bidirectional_attention", true}}));
  expect_pair(vectors, "dense.0.weight", "dense_2.weight");
  expect_pair(vectors, "dense.1.weight", "dense_3.weight");
}

TEST(FileTensorsTest, NamesLinearAttention) {
  const ModelMetadata model = model_metadata(small_qwen35());
  const Pairs names = {
      {"in_proj_qkv.weight", "attn_qkv.weight"},
      {"in_proj_z.weight", "attn_gate.weight"},
      {"in_proj_a.weight", "ssm_alpha.weight"},
      {"in_proj_b.weight", "ssm_beta.weight"},
      {"conv1d.weight", "ssm_conv1d.weight"},
      {"A_log", "ssm_a"},
      {"dt_bias", "ssm_dt.bias"},
      {"norm.weight", "ssm_norm.weight"},
      {"out_proj.weight", "ssm_out.weight"},
  };
  for (const auto& [ours, gguf] : names) {
    expect_pair(model, "model.layers.1.linear_attn." + ours, "blk.1." + gguf);
  }
  expect_pair(
      model, "model.layers.1.post_attention_layernorm.weight", "blk.1.post_attention_norm.weight"
  );
}

TEST(FileTensorsTest, TakesNamesOfModelsForImages) {
  const ModelMetadata model = model_metadata(small_qwen35());
  const auto head = file_tensor(model, "language_model.lm_head.weight");
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->name, "output.weight");
  EXPECT_EQ(head->role.name, "language_model.lm_head.weight");
  const auto decay = file_tensor(model, "language_model.model.layers.0.linear_attn.A_log");
  ASSERT_TRUE(decay.has_value());
  EXPECT_EQ(decay->name, "blk.0.ssm_a");
}

TEST(FileTensorsTest, LeavesOutWhatFilesDoNotHave) {
  const ModelMetadata tied = model_metadata(small_gemma2());
  for (const char* name :
       {"lm_head.weight",
        "language_model.lm_head.weight",
        "model.layers.0.self_attn.rotary_emb.inv_freq",
        "vision_tower.blocks.0.weight",
        "mtp.fc.weight"}) {
    EXPECT_FALSE(file_tensor(tied, name).has_value()) << name;
  }
}

TEST(FileTensorsTest, RefusesWhatFilesCannotHave) {
  const ModelMetadata qwen = model_metadata(small_config("qwen2"));
  const std::vector<std::string> names = {
      "model.layers.0.self_attn.o_proj.bias",
      "model.layers.0.mlp.up_proj.bias",
      "model.layers.0.self_attn.sinks",
      "model.layers.6.self_attn.q_proj.weight",
      "model.layers.00.self_attn.q_proj.weight",
      "model.layers.0.self_attn.q_proj.scales",
      "model.layers.0.mlp.gate.weight",
      "model.layers.0.post_feedforward_layernorm.weight",
      "model.layers.0.linear_attn.A_log",
      "model.embed_tokens.bias",
      "lm_head.bias",
      "dense.0.weight",
      "score.weight",
      "x",
      "",
  };
  for (const std::string& name : names) {
    expect_error(ErrorCode::kUnsupported, {"architecture qwen2", "'" + name + "'"}, [&] {
      file_tensor(qwen, name);
    });
  }
  // Llama's files may have these biases.
  const ModelMetadata llama = model_metadata(small_config("llama"));
  expect_pair(llama, "model.layers.0.self_attn.o_proj.bias", "blk.0.attn_output.bias");
  expect_pair(llama, "model.layers.0.mlp.up_proj.bias", "blk.0.ffn_up.bias");
}

TensorEntry entry_of(const Shape& shape) {
  TensorEntry entry;
  entry.name = "t";
  entry.shape = shape;
  entry.element_count = 1;
  for (const std::int64_t size : shape) {
    entry.element_count *= size;
  }
  return entry;
}

// A row of the file has the folder's row that the reader puts it to.
void expect_inverse(const TensorRole& role, const Shape& shape) {
  const TensorEntry entry = entry_of(shape);
  const auto file_row = row_order(entry, role);
  const auto folder_row = folder_rows(role, shape);
  bool moves = false;
  for (std::int64_t row = 0; row < rows_of(entry, role); ++row) {
    EXPECT_EQ(folder_row(file_row(row)), row);
    EXPECT_EQ(file_row(folder_row(row)), row);
    moves = moves || file_row(row) != row;
  }
  EXPECT_EQ(moves, role.moves_rows());
}

TEST(FileTensorsTest, OrdersRowsAgainstTheReader) {
  expect_inverse({.name = "t", .rotated_heads = 4}, {64, 32});
  expect_inverse({.name = "t", .rotated_heads = 2}, {32});
  const ValueHeads heads = {.key_heads = 2, .repeats = 3, .first = 10, .size = 4};
  expect_inverse({.name = "t", .rows = heads}, {34, 8});
  expect_inverse({.name = "t", .rows = heads}, {34, 2, 8});
  expect_inverse({.name = "t", .rows = {.key_heads = 2, .repeats = 3, .first = 0, .size = 1}}, {6});
  expect_inverse({.name = "t"}, {4, 4});
}

TEST(FileTensorsTest, OrdersColumnsAgainstTheReader) {
  const ValueHeads heads = {.key_heads = 2, .repeats = 3, .first = 0, .size = 2};
  std::vector<std::byte> row;
  for (int i = 0; i < 12; ++i) {
    row.push_back(static_cast<std::byte>(i));
  }
  const std::vector<std::byte> original = row;
  std::vector<std::byte> scratch;
  reversed(heads).move_columns(row, scratch);
  EXPECT_NE(row, original);
  heads.move_columns(row, scratch);
  EXPECT_EQ(row, original);
}

TEST(FileTensorsTest, ChangesValues) {
  EXPECT_EQ(file_value({.name = "t"}, 0.5F), 0.5F);
  EXPECT_EQ(file_value({.name = "t", .plus_one = true}, 0.5F), 1.5F);
  const float decay = file_value({.name = "t", .is_decay = true}, 0.75F);
  EXPECT_EQ(decay, -std::exp(0.75F));
  EXPECT_NEAR(log_of_decay(decay, "t"), 0.75F, 1e-6F);
}

TEST(FileTensorsTest, ChecksShapes) {
  const auto shape = [](const TensorRole& role, const Shape& sizes) {
    return file_shape({.name = "t", .role = role}, sizes);
  };
  EXPECT_EQ(shape({.name = "t", .ends_in_one = true}, {6, 4, 1}), (Shape{6, 4}));
  EXPECT_EQ(shape({.name = "t", .rotated_heads = 2}, {8, 4}), (Shape{8, 4}));
  const ValueHeads heads = {.key_heads = 2, .repeats = 2, .first = 0, .size = 3};
  EXPECT_EQ(shape({.name = "t", .columns = heads}, {5, 12}), (Shape{5, 12}));
  const std::vector<std::pair<TensorRole, Shape>> broken = {
      {{.name = "t", .ends_in_one = true}, {6, 4}},
      {{.name = "t", .ends_in_one = true}, {1}},
      {{.name = "t", .rotated_heads = 2}, {6, 4}},
      {{.name = "t", .rotated_heads = 2}, {2, 4}},
      {{.name = "t", .rows = heads}, {11, 4}},
      {{.name = "t", .columns = heads}, {12, 4}},
      {{.name = "t"}, {}},
      {{.name = "t"}, {0, 4}},
  };
  for (const auto& one : broken) {
    expect_error(ErrorCode::kCorruptData, {"'t'"}, [&] { shape(one.first, one.second); });
  }
}

}  // namespace
}  // namespace saker::load::gguf

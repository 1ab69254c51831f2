// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_model.h"

#include "saker/base/error.h"
#include "saker/base/tensor.h"
#include "saker/load/checkpoint.h"
#include "saker/load/convert/convert_model.h"
#include "saker/load/gguf/blocks/gguf_types.h"
#include "saker/load/importers/lazy_tensor.h"

#include "tests/load/gguf/small_llama.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {
namespace {

using saker::testing::expect_error;
using saker::testing::GgufBuilder;
using saker::testing::TemporaryDir;

importers::ImportedModel open(const TemporaryDir& dir, const std::string& file) {
  return open_gguf(dir.write("model.gguf", file));
}

std::vector<float> floats(const TensorMap& tensors, const std::string& name) {
  return to_floats(tensors.at(name));
}

TEST(GgufModelTest, ConfigurationSaysWhatTheMetadataSays) {
  const TemporaryDir dir;
  const Json config = open(dir, llama().file()).config;
  EXPECT_EQ(config["model_type"], "llama");
  EXPECT_EQ(config["hidden_size"], 64);
  EXPECT_EQ(config["num_hidden_layers"], 1);
  EXPECT_EQ(config["num_attention_heads"], 4);
  EXPECT_EQ(config["num_key_value_heads"], 2);
  EXPECT_EQ(config["head_dim"], 16);
  EXPECT_EQ(config["rms_norm_eps"], 1e-5);
  EXPECT_EQ(config["rope_theta"], 500000.0);
  EXPECT_EQ(config["vocab_size"], 96);
  EXPECT_EQ(config["tie_word_embeddings"], true);
  EXPECT_EQ(config["torch_dtype"], "float32");
  EXPECT_FALSE(config.contains("quantization"));
  EXPECT_FALSE(config.contains("rope_scaling"));
}

TEST(GgufModelTest, AdaptersAreNoModels) {
  const TemporaryDir dir;
  GgufBuilder file;
  file.string("general.architecture", "llama").string("general.type", "adapter");
  expect_error(ErrorCode::kInvalidArgument, {"is an adapter", "--adapter"}, [&] {
    open(dir, file.file());
  });
}

// Row 2j + half of a head in the file is row half * 8 + j here.
TEST(GgufModelTest, RowsThatRotateAreHalfAHeadApart) {
  const TemporaryDir dir;
  const auto tensors = importers::make_tensors(open(dir, llama().file()));
  const auto file = numbers(2 * kHeadDim * kHidden);
  const auto ours = floats(tensors, "model.layers.0.self_attn.k_proj.weight");
  for (std::size_t head = 0; head < 2; ++head) {
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t j = 0; j < kHeadDim / 2; ++j) {
        const std::size_t from = head * kHeadDim + 2 * j + half;
        const std::size_t to = head * kHeadDim + half * kHeadDim / 2 + j;
        EXPECT_EQ(ours[to * kHidden], file[from * kHidden]);
        EXPECT_EQ(ours[to * kHidden + 63], file[from * kHidden + 63]);
      }
    }
  }
  EXPECT_EQ(floats(tensors, "model.layers.0.self_attn.v_proj.weight"), file);
}

TEST(GgufModelTest, OtherFamiliesKeepTheirRows) {
  const TemporaryDir dir;
  GgufBuilder builder = metadata("qwen3");
  builder.tensor("token_embd.weight", {kHidden, kVocabulary}, kF32, f32(kHidden * kVocabulary));
  builder.tensor("blk.0.attn_q.weight", {kHidden, kHidden}, kF32, f32(kHidden * kHidden));
  builder.tensor("blk.0.attn_q.bias", {kHidden}, kF32, f32(kHidden));
  const auto tensors = importers::make_tensors(open(dir, builder.file()));
  EXPECT_EQ(floats(tensors, "model.layers.0.self_attn.q_proj.weight"), numbers(kHidden * kHidden));
  EXPECT_EQ(floats(tensors, "model.layers.0.self_attn.q_proj.bias"), numbers(kHidden));
}

TEST(GgufModelTest, GemmaNormsLoseTheirOne) {
  const TemporaryDir dir;
  GgufBuilder builder = metadata("gemma3");
  builder.integer("gemma3.attention.sliding_window", 512);
  builder.tensor(
      "token_embd.weight",
      {kHidden, kVocabulary},
      kBF16,
      bytes_as(numbers(kHidden * kVocabulary), DType::kBFloat16)
  );
  builder.tensor("blk.0.attn_norm.weight", {kHidden}, kF32, f32(kHidden));
  builder.tensor("blk.0.attn_k_norm.weight", {kHeadDim}, kF32, f32(kHeadDim));
  builder.tensor("blk.0.ffn_norm.weight", {kHidden}, kF32, f32(kHidden));
  builder.tensor("blk.0.post_ffw_norm.weight", {kHidden}, kF32, f32(kHidden));
  const auto model = open(dir, builder.file());
  EXPECT_EQ(model.config["model_type"], "gemma3_text");
  EXPECT_EQ(model.config["query_pre_attn_scalar"], 16);
  EXPECT_EQ(model.config["sliding_window"], 512);
  const auto tensors = importers::make_tensors(model);
  const auto norm = floats(tensors, "model.layers.0.input_layernorm.weight");
  EXPECT_EQ(norm[0], -1.0F);
  EXPECT_EQ(norm[32], -0.5F);
  EXPECT_EQ(tensors.at("model.layers.0.input_layernorm.weight").dtype, DType::kBFloat16);
  EXPECT_EQ(floats(tensors, "model.layers.0.self_attn.k_norm.weight")[0], -1.0F);
  EXPECT_TRUE(tensors.contains("model.layers.0.pre_feedforward_layernorm.weight"));
  EXPECT_TRUE(tensors.contains("model.layers.0.post_feedforward_layernorm.weight"));
}

// EmbeddingGemma: its pooling and dense layers.
TEST(GgufModelTest, EmbeddingModelsSayHowTheyPool) {
  const TemporaryDir dir;
  GgufBuilder builder = metadata("gemma-embedding");
  builder.integer("gemma-embedding.attention.sliding_window", 512)
      .integer("gemma-embedding.pooling_type", 1)
      .boolean("gemma-embedding.attention.causal", false);
  builder.tensor("token_embd.weight", {kHidden, kVocabulary}, kF32, f32(kHidden * kVocabulary));
  builder.tensor("dense_2.weight", {kHidden, 96}, kF32, f32(kHidden * 96));
  builder.tensor("dense_3.weight", {96, kHidden}, kF32, f32(kHidden * 96));
  const auto model = open(dir, builder.file());
  EXPECT_EQ(model.config["model_type"], "gemma3_text");
  EXPECT_EQ(model.config["use_bidirectional_attention"], true);
  EXPECT_EQ(model.config["sliding_window"], 512);
  EXPECT_EQ(model.config["text_embedding"]["pooling"], "mean");
  const auto tensors = importers::make_tensors(model);
  EXPECT_EQ(tensors.at("dense.0.weight").shape, (std::vector<std::int64_t>{96, 64}));
  EXPECT_EQ(tensors.at("dense.1.weight").shape, (std::vector<std::int64_t>{64, 96}));
}

TEST(GgufModelTest, PoolingTypesOfOtherFamilies) {
  const TemporaryDir dir;
  const auto section = [&](std::uint32_t type) {
    GgufBuilder builder = llama();
    builder.integer("llama.pooling_type", type);
    return open(dir, builder.file()).config.value("text_embedding", Json());
  };
  EXPECT_EQ(section(2)["pooling"], "cls");
  EXPECT_EQ(section(3)["pooling"], "last");
  EXPECT_TRUE(section(0).is_null());
  EXPECT_TRUE(section(4).is_null());
  GgufBuilder builder = llama();
  builder.boolean("llama.attention.causal", false);
  expect_error(ErrorCode::kUnsupported, {"llama.attention.causal", "false", "true"}, [&] {
    open(dir, builder.file());
  });
}

TEST(GgufModelTest, NormsAreOfTheModelsDtypeWhereItHoldsThem) {
  const TemporaryDir dir;
  const auto half = [](std::size_t count) { return bytes_as(numbers(count), DType::kFloat16); };
  GgufBuilder builder = llama(kF16, half);
  builder.tensor(
      "blk.0.attn_q.bias",
      {kHidden},
      kF32,
      bytes_as(std::vector<float>(kHidden, 1.0F + 0x1p-20F), DType::kFloat32)
  );
  const auto tensors = importers::make_tensors(open(dir, builder.file()));
  EXPECT_EQ(tensors.at("model.norm.weight").dtype, DType::kFloat16);
  EXPECT_EQ(floats(tensors, "model.norm.weight"), numbers(kHidden));
  EXPECT_EQ(tensors.at("model.layers.0.self_attn.q_proj.bias").dtype, DType::kFloat32);
}

TEST(GgufModelTest, RefusesWhatItDoesNotKnow) {
  const TemporaryDir dir;
  const auto refused =
      [&](ErrorCode code, const std::vector<std::string_view>& words, const GgufBuilder& file) {
        expect_error(code, words, [&] { open(dir, file.file()); });
      };
  refused(ErrorCode::kUnsupported, {"'mamba'", "llama, qwen2"}, metadata("mamba"));
  refused(ErrorCode::kCorruptData, {"general.architecture"}, GgufBuilder());
  refused(
      ErrorCode::kUnsupported, {"'blk.0.ssm_a'"}, llama().tensor("blk.0.ssm_a", {1}, kF32, "1234")
  );
  refused(ErrorCode::kCorruptData, {"expert_used_count"}, llama().integer("llama.expert_count", 8));
  refused(
      ErrorCode::kUnsupported,
      {"rope.dimension_count", "8"},
      llama().integer("llama.rope.dimension_count", 8)
  );
  refused(
      ErrorCode::kUnsupported,
      {"rope.scaling.type", "'longrope'"},
      llama().string("llama.rope.scaling.type", "longrope")
  );
  refused(
      ErrorCode::kUnsupported,
      {"rope.scaling.attn_factor", "1.5", "1"},
      llama()
          .string("llama.rope.scaling.type", "yarn")
          .number("llama.rope.scaling.factor", 4.0F)
          .integer("llama.rope.scaling.original_context_length", 2048)
          .number("llama.rope.scaling.attn_factor", 1.5F)
  );
  refused(
      ErrorCode::kCorruptData,
      {"rope_freqs", "8 numbers", "8 above 0"},
      llama().tensor("rope_freqs.weight", {8}, kF32, f32(8))
  );
  refused(
      ErrorCode::kCorruptData,
      {"rope_freqs", "4 numbers", "8 above 0"},
      llama().tensor("rope_freqs.weight", {4}, kF32, bytes_as({1, 2, 3, 4}, DType::kFloat32))
  );
  refused(ErrorCode::kCorruptData, {"token_embd"}, metadata("llama"));
  GgufBuilder odd = metadata("llama");
  odd.tensor("token_embd.weight", {kHidden, 2}, kF32, f32(2 * kHidden));
  odd.tensor("blk.0.attn_q.weight", {kHidden, 3}, kF32, f32(3 * kHidden));
  refused(ErrorCode::kCorruptData, {"attn_q", "3 rows"}, odd);
}

TEST(GgufModelTest, ReadsLlama3sRopeFromItsFactors) {
  const TemporaryDir dir;
  // theta 500000 and 16 dimensions: frequencies that turn more than 4 times in 8192 positions stay.
  std::vector<float> factors(8);
  GgufBuilder builder = llama();
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const double turns =
        8192.0 / (2.0 * std::numbers::pi * std::pow(500000.0, static_cast<double>(i) / 8.0));
    const double smooth = (turns - 1.0) / 3.0;
    factors[i] = turns < 1.0   ? 32.0F
                 : turns > 4.0 ? 1.0F
                               : static_cast<float>(1.0 / ((1.0 - smooth) / 32.0 + smooth));
  }
  builder.tensor("rope_freqs.weight", {8}, kF32, bytes_as(factors, DType::kFloat32));
  const Json config = open(dir, builder.file()).config;
  EXPECT_EQ(config["rope_scaling"]["rope_type"], "llama3");
  EXPECT_EQ(config["rope_scaling"]["factor"], 32.0);
  EXPECT_EQ(config["rope_scaling"]["original_max_position_embeddings"], 8192);
}

TEST(GgufModelTest, OtherFactorsOfRopeAreAList) {
  const TemporaryDir dir;
  const std::vector<float> factors{1, 1, 1.5, 2, 2, 4, 8, 1e30F};
  const auto with_factors = [&](GgufBuilder builder) {
    return builder.tensor("rope_freqs.weight", {8}, kF32, bytes_as(factors, DType::kFloat32));
  };
  Json scaling = open(dir, with_factors(llama()).file()).config["rope_scaling"];
  EXPECT_EQ(scaling["rope_type"], "longrope");
  EXPECT_EQ(scaling["short_factor"], scaling["long_factor"]);
  EXPECT_EQ(scaling["short_factor"][2], 1.5);
  EXPECT_EQ(scaling["original_max_position_embeddings"], 512);
  // Beside a factor for all frequencies.
  scaling = open(dir, with_factors(llama().number("llama.rope.scaling.factor", 4.0F)).file())
                .config["rope_scaling"];
  EXPECT_EQ(scaling["short_factor"][2], 6.0);
  const auto source = dir.write("model.gguf", with_factors(llama()).file());
  EXPECT_NE(load_checkpoint(source).model, nullptr);
  expect_error(ErrorCode::kUnsupported, {"rope_freqs", "YaRN"}, [&] {
    open(dir, with_factors(llama().string("llama.rope.scaling.type", "yarn")).file());
  });
}

// As converters of other programs write them.
TEST(GgufModelTest, KeysThatAreLeftOutOrListedByLayer) {
  const TemporaryDir dir;
  const auto integers = [](const std::vector<std::int32_t>& values) {
    std::string bytes = saker::testing::gguf_number<std::uint32_t>(5) +
                        saker::testing::gguf_number<std::uint64_t>(values.size());
    for (const std::int32_t value : values) {
      bytes += saker::testing::gguf_number(value);
    }
    return bytes;
  };
  const auto with = [&](std::string_view left_out, const std::vector<std::int32_t>& values) {
    GgufBuilder builder = llama(kF32, f32, left_out);
    if (!values.empty()) {
      builder.raw("llama." + std::string(left_out), 9, integers(values));
    }
    return open(dir, builder.file()).config;
  };
  EXPECT_EQ(with("attention.head_count_kv", {2, 2})["num_key_value_heads"], 2);
  EXPECT_EQ(with("feed_forward_length", {32})["intermediate_size"], 32);
  expect_error(ErrorCode::kUnsupported, {"feed_forward_length", "several"}, [&] {
    with("feed_forward_length", {32, 64});
  });
  EXPECT_FALSE(with("context_length", {}).contains("max_position_embeddings"));
  const Json yarn = open(
                        dir,
                        llama()
                            .string("llama.rope.scaling.type", "yarn")
                            .number("llama.rope.scaling.factor", 4.0F)
                            .file()
  )
                        .config;
  EXPECT_EQ(yarn["rope_scaling"]["original_max_position_embeddings"], 512);
}

// Each expert's rows: those of the gate, then those of up.
TEST(GgufModelTest, MergedExpertsComeApart) {
  constexpr std::uint64_t kExperts = 3;
  constexpr std::uint64_t kWidth = 8;
  const TemporaryDir dir;
  const auto file = [&](std::uint64_t rows, std::uint32_t type, const std::string& bytes) {
    GgufBuilder builder = metadata("qwen3moe");
    builder.integer("qwen3moe.expert_count", kExperts)
        .integer("qwen3moe.expert_used_count", 2)
        .integer("qwen3moe.expert_feed_forward_length", kWidth);
    builder.tensor("token_embd.weight", {kHidden, kVocabulary}, kF32, f32(kHidden * kVocabulary));
    builder.tensor("blk.0.ffn_gate_up_exps.weight", {kHidden, rows, kExperts}, type, bytes);
    return dir.write("experts.gguf", builder.file());
  };
  const std::vector<std::int64_t> shape = {kExperts, kWidth, kHidden};
  const std::string scope = "model.layers.0.mlp.switch_mlp.";
  const auto expect_parts = [&](const std::vector<float>& all, const auto& part_of) {
    for (std::size_t part = 0; part < 2; ++part) {
      std::vector<float> expected;
      for (std::size_t expert = 0; expert < kExperts; ++expert) {
        const auto from =
            all.begin() + static_cast<std::ptrdiff_t>((2 * expert + part) * kWidth * kHidden);
        expected.insert(expected.end(), from, from + kWidth * kHidden);
      }
      EXPECT_EQ(part_of(scope + (part == 0 ? "gate_proj" : "up_proj")), expected);
    }
  };
  const std::size_t count = kExperts * 2 * kWidth * kHidden;
  const auto plain = importers::make_tensors(open_gguf(file(2 * kWidth, kF32, f32(count))));
  EXPECT_EQ(plain.size(), 3U);
  expect_parts(numbers(count), [&](const std::string& path) {
    EXPECT_EQ(plain.at(path + ".weight").shape, shape);
    return floats(plain, path + ".weight");
  });
  const std::string blocks = q4_blocks(count);
  std::vector<float> values(count);
  to_floats(
      TensorType::kQ40,
      reinterpret_cast<const std::byte*>(blocks.data()),
      values.size(),
      values.data()
  );
  const auto path = file(2 * kWidth, kQ40, blocks);
  const BlockModel stored = open_gguf_blocks(path);
  EXPECT_TRUE(stored.formats.contains(scope + "up_proj"));
  const auto tensors = importers::make_tensors(stored.model);
  expect_parts(values, [&](const std::string& module) {
    std::vector<float> part(count / 2);
    const auto bytes = tensors.at(module + ".weight").bytes();
    to_floats(TensorType::kQ40, bytes.data(), part.size(), part.data());
    return part;
  });
  const auto affine = importers::make_tensors(open_gguf(path));
  EXPECT_EQ(
      affine.at(scope + "up_proj.scales").shape, (std::vector<std::int64_t>{3, 8, kHidden / 32})
  );
  expect_error(ErrorCode::kCorruptData, {"ffn_gate_up_exps", "15", "2 equal parts"}, [&] {
    open_gguf(file(15, kF32, f32(kExperts * 15 * kHidden)));
  });
}

TEST(GgufModelTest, MergedExpertsHaveThreeDimensions) {
  const TemporaryDir dir;
  GgufBuilder builder = metadata("qwen3moe");
  builder.integer("qwen3moe.expert_count", 2)
      .integer("qwen3moe.expert_used_count", 1)
      .integer("qwen3moe.expert_feed_forward_length", 8);
  builder.tensor("token_embd.weight", {kHidden, kVocabulary}, kF32, f32(kHidden * kVocabulary));
  builder.tensor("blk.0.ffn_gate_up_exps.weight", {kHidden, 16}, kF32, f32(kHidden * 16));
  const std::string file = builder.file();
  expect_error(ErrorCode::kCorruptData, {"ffn_gate_up_exps", "three dimensions"}, [&] {
    open(dir, file);
  });
  // Other families have no experts.
  GgufBuilder dense = metadata("qwen3");
  dense.tensor("token_embd.weight", {kHidden, kVocabulary}, kF32, f32(kHidden * kVocabulary));
  dense.tensor("blk.0.ffn_gate_up_exps.weight", {kHidden, 16, 2}, kF32, f32(kHidden * 32));
  const std::string other = dense.file();
  expect_error(ErrorCode::kUnsupported, {"ffn_gate_up_exps", "qwen3"}, [&] { open(dir, other); });
}

TEST(GgufModelTest, ConvertsToAFolderThatRuns) {
  const TemporaryDir dir;
  const auto source = dir.write("model.gguf", llama(kQ40, q4_blocks).file());
  const auto report = convert_model(source, dir.path() / "plain", {});
  EXPECT_EQ(report.tensors, 3U + 3U * 8U);
  EXPECT_NE(load_checkpoint(dir.path() / "plain").model, nullptr);
  EXPECT_NE(load_checkpoint(source).model, nullptr);
  ConvertOptions options;
  options.dequantize = true;
  EXPECT_EQ(convert_model(source, dir.path() / "wide", options).dequantized, 8U);
  EXPECT_NE(load_checkpoint(dir.path() / "wide").model, nullptr);
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    EXPECT_FALSE(entry.path().filename().native().starts_with('.')) << entry.path();
  }
}

TEST(GgufModel, AFactorAloneScalesPositionsLinearly) {
  const TemporaryDir dir;
  for (const char* key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    const Json config = open(dir, llama().number(key, 4.0F).file()).config;
    EXPECT_EQ(config["rope_scaling"]["rope_type"], "linear") << key;
    EXPECT_EQ(config["rope_scaling"]["factor"], 4.0) << key;
  }
  const Json yarn = open(
                        dir,
                        llama()
                            .string("llama.rope.scaling.type", "yarn")
                            .number("llama.rope.scaling.factor", 4.0F)
                            .number("llama.rope.scaling.yarn_beta_fast", 8.0F)
                            .integer("llama.rope.scaling.original_context_length", 2048)
                            .file()
  )
                        .config;
  EXPECT_EQ(yarn["rope_scaling"]["beta_fast"], 8.0);
}

}  // namespace
}  // namespace saker::load::gguf

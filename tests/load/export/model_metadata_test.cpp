// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/model_metadata.h"

#include "saker/base/error.h"
#include "saker/load/gguf/gguf_config.h"
#include "saker/load/gguf/gguf_family.h"

#include "tests/load/export/small_configs.h"
#include "tests/load/export/written_header.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {
namespace {

using saker::testing::expect_error;

// The configuration that our reader makes of a file with this metadata.
Json read_back(const ModelMetadata& model) {
  constexpr std::uint32_t kFloat32 = 0;
  const auto rows = static_cast<std::uint64_t>(model.vocab_size);
  testing::GgufBuilder builder = builder_of(model.pairs);
  builder.tensor("token_embd.weight", {64, rows}, kFloat32, std::string(64 * rows * 4, '\0'));
  if (!model.is_tied) {
    builder.tensor("output.weight", {64, rows}, kFloat32, std::string(64 * rows * 4, '\0'));
  }
  const Header header = header_of(builder);
  return model_config(header, family_of(header), model.rope_factors);
}

void expect_same(const ModelMetadata& got, const ModelMetadata& expected, const std::string& what) {
  ASSERT_EQ(got.pairs.size(), expected.pairs.size()) << what;
  for (std::size_t i = 0; i < got.pairs.size(); ++i) {
    EXPECT_EQ(got.pairs[i].key, expected.pairs[i].key) << what;
    EXPECT_EQ(got.pairs[i].value, expected.pairs[i].value) << what << got.pairs[i].key;
  }
  ASSERT_EQ(got.rope_factors.size(), expected.rope_factors.size()) << what;
  for (std::size_t i = 0; i < got.rope_factors.size(); ++i) {
    EXPECT_NEAR(got.rope_factors[i], expected.rope_factors[i], 1e-4F) << what << i;
  }
  EXPECT_EQ(got.is_tied, expected.is_tied) << what;
}

void expect_round_trip(const Json& config, const std::string& what) {
  const ModelMetadata model = model_metadata(config);
  expect_same(model_metadata(read_back(model)), model, what);
}

TEST(ModelMetadataTest, ReadsBackAsTheSameModel) {
  for (const auto& [family, config] : small_configs()) {
    EXPECT_EQ(model_metadata(config).family->name, family);
    expect_round_trip(config, family);
  }
}

TEST(ModelMetadataTest, HasTheKeysAndTypesOfLlamaCpp) {
  const ModelMetadata model = model_metadata(small_config("llama"), {.name = "Small"});
  const Metadata& pairs = model.pairs;
  EXPECT_EQ(pairs.front().key, "general.architecture");
  EXPECT_EQ(value_of<std::string>(pairs, "general.architecture"), "llama");
  EXPECT_EQ(value_of<std::string>(pairs, "general.type"), "model");
  EXPECT_EQ(value_of<std::string>(pairs, "general.name"), "Small");
  const std::vector<std::pair<std::string, std::uint32_t>> sizes = {
      {"vocab_size", 40},
      {"block_count", 6},
      {"context_length", 512},
      {"embedding_length", 64},
      {"feed_forward_length", 96},
      {"attention.head_count", 4},
      {"attention.head_count_kv", 2},
      {"attention.key_length", 16},
      {"attention.value_length", 16},
      {"rope.dimension_count", 16},
  };
  for (const auto& [key, size] : sizes) {
    EXPECT_EQ(value_of<std::uint32_t>(pairs, "llama." + key), size) << key;
  }
  EXPECT_EQ(value_of<float>(pairs, "llama.attention.layer_norm_rms_epsilon"), 1e-5F);
  EXPECT_EQ(value_of<float>(pairs, "llama.rope.freq_base"), 50000.0F);
  EXPECT_FALSE(has_key(pairs, "llama.rope.scaling.type"));
  EXPECT_TRUE(model.rope_factors.empty());
  EXPECT_FALSE(has_key(model_metadata(small_config("llama")).pairs, "general.name"));
}

TEST(ModelMetadataTest, HasTheDefaultsOfOurModels) {
  Json bare = small_config("llama");
  for (const char* key :
       {"num_key_value_heads",
        "head_dim",
        "max_position_embeddings",
        "rms_norm_eps",
        "rope_theta",
        "tie_word_embeddings"}) {
    bare.erase(key);
  }
  const Metadata pairs = model_metadata(bare).pairs;
  EXPECT_EQ(value_of<std::uint32_t>(pairs, "llama.attention.head_count_kv"), 4U);
  EXPECT_EQ(value_of<std::uint32_t>(pairs, "llama.attention.key_length"), 16U);
  EXPECT_EQ(value_of<std::uint32_t>(pairs, "llama.context_length"), 2048U);
  EXPECT_EQ(value_of<float>(pairs, "llama.attention.layer_norm_rms_epsilon"), 1e-6F);
  EXPECT_EQ(value_of<float>(pairs, "llama.rope.freq_base"), 10000.0F);
  const Metadata gemma = model_metadata(small_gemma3({{"rope_local_base_freq", nullptr}})).pairs;
  EXPECT_EQ(value_of<float>(gemma, "gemma3.rope.freq_base_swa"), 10000.0F);
}

TEST(ModelMetadataTest, WritesLlamasOfOtherNames) {
  EXPECT_EQ(model_metadata(small_config("mistral")).family->name, "llama");
  EXPECT_EQ(
      model_metadata(small_config("mistral", {{"sliding_window", nullptr}})).family->name, "llama"
  );
  EXPECT_EQ(model_metadata(small_config("generic")).family->name, "llama");
  const Json text = small_qwen35();
  EXPECT_EQ(
      model_metadata({{"model_type", "qwen3_5"}, {"text_config", text}}).family->name, "qwen35"
  );
}

TEST(ModelMetadataTest, KnowsTiedHeads) {
  EXPECT_FALSE(model_metadata(small_config("llama")).is_tied);
  EXPECT_TRUE(model_metadata(small_config("llama", {{"tie_word_embeddings", true}})).is_tied);
  EXPECT_TRUE(model_metadata(small_config("gemma")).is_tied);
}

TEST(ModelMetadataTest, ScalesRopes) {
  const Json linear = {{"rope_scaling", {{"rope_type", "linear"}, {"factor", 4.0}}}};
  const Metadata pairs = model_metadata(small_config("qwen2", linear)).pairs;
  EXPECT_EQ(value_of<std::string>(pairs, "qwen2.rope.scaling.type"), "linear");
  EXPECT_EQ(value_of<float>(pairs, "qwen2.rope.scaling.factor"), 4.0F);
  const Json yarn = {
      {"rope_scaling",
       {{"rope_type", "yarn"},
        {"factor", 4.0},
        {"original_max_position_embeddings", 128},
        {"beta_fast", 16.0}}}
  };
  const Metadata stretched = model_metadata(small_config("qwen3", yarn)).pairs;
  EXPECT_EQ(value_of<std::string>(stretched, "qwen3.rope.scaling.type"), "yarn");
  EXPECT_EQ(value_of<std::uint32_t>(stretched, "qwen3.rope.scaling.original_context_length"), 128U);
  EXPECT_EQ(value_of<float>(stretched, "qwen3.rope.scaling.yarn_beta_fast"), 16.0F);
  EXPECT_FALSE(has_key(stretched, "qwen3.rope.scaling.yarn_beta_slow"));
  expect_round_trip(small_config("qwen2", linear), "linear");
  expect_round_trip(small_config("qwen3", yarn), "yarn");
  expect_round_trip(small_gemma3(linear), "linear in full layers");
}

TEST(ModelMetadataTest, MakesFactorsOfLlama3) {
  const Json llama3 = {
      {"rope_theta", 500000.0},
      {"rope_scaling",
       {{"rope_type", "llama3"},
        {"factor", 32.0},
        {"low_freq_factor", 1.0},
        {"high_freq_factor", 4.0},
        {"original_max_position_embeddings", 8192}}}
  };
  const ModelMetadata model = model_metadata(small_config("llama", llama3));
  ASSERT_EQ(model.rope_factors.size(), 8U);
  EXPECT_EQ(model.rope_factors.front(), 1.0F);
  EXPECT_NEAR(model.rope_factors.back(), 32.0F, 1e-4F);
  EXPECT_FALSE(has_key(model.pairs, "llama.rope.scaling.type"));
  EXPECT_EQ(read_back(model)["rope_scaling"]["rope_type"], "llama3");
  expect_round_trip(small_config("llama", llama3), "llama3");
  const std::vector<double> factors = {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0};
  const Json listed = {
      {"rope_scaling",
       {{"rope_type", "longrope"},
        {"factor", 1.0},
        {"short_factor", factors},
        {"long_factor", factors},
        {"original_max_position_embeddings", 512}}}
  };
  expect_round_trip(small_config("llama", listed), "longrope");
}

TEST(ModelMetadataTest, DescribesLinearAttention) {
  const Json rope = {{"mrope_section", {2, 1, 1}}, {"rope_theta", 50000.0}};
  const Metadata pairs = model_metadata(small_qwen35({{"rope_parameters", rope}})).pairs;
  EXPECT_EQ(value_of<std::uint32_t>(pairs, "qwen35.rope.dimension_count"), 4U);
  EXPECT_EQ(value_of<std::uint32_t>(pairs, "qwen35.ssm.inner_size"), 40U);
  EXPECT_EQ(value_of<std::uint32_t>(pairs, "qwen35.full_attention_interval"), 3U);
  const std::vector<std::int32_t> sections = {2, 1, 1, 0};
  EXPECT_EQ(value_of<std::vector<std::int32_t>>(pairs, "qwen35.rope.dimension_sections"), sections);
}

TEST(ModelMetadataTest, DescribesVectors) {
  const Json last = {{"text_embedding", {{"pooling", "last"}}}};
  EXPECT_EQ(
      value_of<std::uint32_t>(
          model_metadata(small_config("qwen3", last)).pairs, "qwen3.pooling_type"
      ),
      3U
  );
  EXPECT_FALSE(has_key(model_metadata(small_config("qwen3")).pairs, "qwen3.pooling_type"));
  const Json both = small_gemma3({{"use_bidirectional_attention", true}});
  const Metadata pairs = model_metadata(both, {.name = {}, .dense = {{64, 128}, {128, 64}}}).pairs;
  EXPECT_EQ(value_of<std::uint32_t>(pairs, "gemma-embedding.pooling_type"), 1U);
  EXPECT_EQ(value_of<std::uint32_t>(pairs, "gemma-embedding.dense_2_feat_out"), 128U);
  EXPECT_EQ(value_of<std::uint32_t>(pairs, "gemma-embedding.dense_3_feat_in"), 128U);
  // Windows reach half as far to both sides; the file has the whole.
  EXPECT_EQ(value_of<std::uint32_t>(pairs, "gemma-embedding.attention.sliding_window"), 128U);
  expect_error(ErrorCode::kUnsupported, {"dense.0", "hidden_size 64"}, [&] {
    model_metadata(both, {.name = {}, .dense = {{32, 128}}});
  });
  expect_error(ErrorCode::kUnsupported, {"number of dense layers is 1"}, [&] {
    model_metadata(small_config("qwen3", last), {.name = {}, .dense = {{64, 64}}});
  });
}

struct Refusal {
  Json config;
  std::vector<std::string_view> words;
};

TEST(ModelMetadataTest, RefusesWhatFilesCannotSay) {
  const auto rope = [](const Json& scaling) { return Json{{"rope_scaling", scaling}}; };
  const Json llama3 = rope({{"rope_type", "llama3"}, {"factor", 8.0}});
  const Json yarn = rope({{"rope_type", "yarn"}, {"factor", 4.0}, {"attention_factor", 2.0}});
  const Json stepped = rope({{"rope_type", "yarn"}, {"factor", 4.0}, {"truncate", false}});
  const Json late = {{"use_sliding_window", true}, {"max_window_layers", 2}, {"sliding_window", 8}};
  const std::vector<Refusal> refusals = {
      {small_config("gemma4_text"), {"model_type is 'gemma4_text'", "llama, mistral", "gemma3"}},
      {small_config("llama", {{"hidden_act", "gelu"}}), {"hidden_act is gelu", "silu"}},
      {small_gemma2({{"hidden_activation", "silu"}}), {"hidden_act is silu", "gelu_pytorch_tanh"}},
      {small_config("mistral", {{"sliding_window", 8}}), {"layer 0 is a sliding window"}},
      {small_config("qwen2", late), {"layer 2 is a sliding window", "no windows"}},
      {small_gemma3({{"sliding_window_pattern", 3}}), {"layer 2", "every 6. layer"}},
      {small_gemma2({{"sliding_window", nullptr}}), {"layer 0 is attention to the whole past"}},
      {small_gemma2({{"query_pre_attn_scalar", 144}}), {"query_pre_attn_scalar is 144", "16"}},
      {small_gemma2({{"final_logit_softcapping", nullptr}}), {"final_logit_softcapping is none"}},
      {small_gemma3({{"final_logit_softcapping", 30.0}}), {"final_logit_softcapping is 30"}},
      {small_moe({{"norm_topk_prob", false}}), {"norm_topk_prob is false", "true"}},
      {small_moe({{"mlp_only_layers", {1}}}), {"layer 1 is one MLP", "experts in every layer"}},
      {small_config("qwen3", llama3), {"rope_type is llama3", "default, linear or yarn"}},
      {small_gemma3(rope({{"rope_type", "yarn"}, {"factor", 4.0}})), {"rope_type is yarn"}},
      {small_config("llama", yarn), {"rope attention_factor is 2"}},
      {small_config("llama", stepped), {"rope truncate is false"}},
      {small_qwen35({{"attn_output_gate", false}}), {"attn_output_gate is false"}},
      {small_config("llama", {{"max_position_embeddings", std::int64_t{1} << 33}}),
       {"context_length is 8589934592"}},
      {small_config("qwen3", {{"text_embedding", {{"problem", "no pooling"}}}}), {"no pooling"}},
  };
  for (const auto& [config, words] : refusals) {
    SCOPED_TRACE(config.dump());
    expect_error(ErrorCode::kUnsupported, words, [&] { model_metadata(config); });
  }
}

TEST(ModelMetadataTest, RefusesLayersInAnotherOrder) {
  Json types = Json::array();
  for (int i = 0; i < 6; ++i) {
    types.push_back(i == 1 || i == 2 ? "full_attention" : "linear_attention");
  }
  expect_error(ErrorCode::kUnsupported, {"layer 2", "every 2. layer"}, [&] {
    model_metadata(small_qwen35({{"layer_types", types}}));
  });
}

TEST(ModelMetadataTest, RefusesBrokenFields) {
  const std::vector<Refusal> broken = {
      {small_config("llama", {{"hidden_size", "64"}}), {"hidden_size"}},
      {small_config("llama", {{"vocab_size", 1e30}}), {"vocab_size"}},
      {small_config("llama", {{"num_hidden_layers", 0}}), {"num_hidden_layers"}},
      {small_qwen35({{"rope_parameters", {{"mrope_section", {1, 2, 3, 4, 5}}}}}), {"mrope_section"}
      },
      {small_qwen35({{"rope_parameters", {{"mrope_section", {-1}}}}}), {"mrope_section"}},
      {small_config("llama", {{"model_type", 7}}), {"model_type"}},
  };
  for (const auto& [config, words] : broken) {
    SCOPED_TRACE(config.dump());
    expect_error(ErrorCode::kCorruptData, words, [&] { model_metadata(config); });
  }
}

}  // namespace
}  // namespace saker::load::gguf

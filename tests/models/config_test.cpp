// SPDX-License-Identifier: Apache-2.0
#include "saker/models/architecture.h"
#include "saker/models/decoder_config.h"

#include "tests/models/changed_config.h"
#include "tests/models/random_model.h"
#include "tests/support/expect_error.h"
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace saker::models {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

TEST(Config, MistralSlidesEverywhere) {
  const auto read = mistral().read;
  EXPECT_THAT(
      windows(read(config_with("mistral", {{"sliding_window", 7}}))), ElementsAre(7, 7, 7, 7)
  );
  EXPECT_THAT(
      windows(read(config_with("mistral", {{"sliding_window", nullptr}}))), ElementsAre(0, 0, 0, 0)
  );
  EXPECT_THAT(windows(read(config_with("mistral", Json::object()))), ElementsAre(0, 0, 0, 0));
}

TEST(Config, LlamaSlidesWhereLayerTypesSaySo) {
  const auto read = llama().read;
  EXPECT_THAT(
      windows(read(config_with("llama", {{"sliding_window", 7}}))), ElementsAre(0, 0, 0, 0)
  );
  const Json types{"full_attention", "sliding_attention", "full_attention", "full_attention"};
  EXPECT_THAT(
      windows(read(config_with("llama", {{"sliding_window", 7}, {"layer_types", types}}))),
      ElementsAre(0, 7, 0, 0)
  );
  expect_error(ErrorCode::kCorruptData, {"layer 1", "sliding_window"}, [&] {
    read(config_with("llama", {{"layer_types", types}}));
  });
}

TEST(Config, QwenSlidesOnRequest) {
  for (const auto read : {qwen2().read, qwen3().read}) {
    const Json off{{"sliding_window", 7}, {"max_window_layers", 2}};
    EXPECT_THAT(windows(read(config_with("qwen2", off))), ElementsAre(0, 0, 0, 0));
    auto on = off;
    on["use_sliding_window"] = true;
    EXPECT_THAT(windows(read(config_with("qwen2", on))), ElementsAre(0, 0, 7, 7));
    on["layer_types"] = {"sliding_attention", "full_attention", "full_attention", "full_attention"};
    EXPECT_THAT(windows(read(config_with("qwen2", on))), ElementsAre(7, 0, 0, 0));
    on["sliding_window"] = nullptr;
    on.erase("layer_types");
    EXPECT_THAT(windows(read(config_with("qwen2", on))), ElementsAre(0, 0, 0, 0));
  }
}

std::vector<bool> expert_layers(const DecoderConfig& config) {
  std::vector<bool> result;
  result.reserve(config.layers.size());
  for (const auto& layer : config.layers) {
    result.push_back(layer.experts);
  }
  return result;
}

TEST(Config, QwenMoeHasExpertsBySparseStep) {
  const auto layers = [](const Json& changes) {
    return expert_layers(qwen3_moe().read(config_with("qwen3_moe", changes)));
  };
  EXPECT_THAT(layers(Json::object()), ElementsAre(true, true, true, true));
  EXPECT_THAT(layers({{"decoder_sparse_step", 2}}), ElementsAre(false, true, false, true));
  const Json dense{{"mlp_only_layers", Json::array({1, 2})}};
  EXPECT_THAT(layers(dense), ElementsAre(true, false, false, true));
  EXPECT_THAT(layers({{"mlp_only_layers", nullptr}}), ElementsAre(true, true, true, true));
}

TEST(Config, QwenMoeReadsItsRouter) {
  const auto moe = [](const Json& changes) {
    return qwen3_moe().read(config_with("qwen3_moe", changes)).moe;
  };
  const Json named{{"moe_intermediate_size", 24}, {"num_experts", 5}, {"num_experts_per_tok", 3}};
  EXPECT_EQ(moe(named).intermediate, 24);
  EXPECT_EQ(moe(named).experts, 5);
  EXPECT_EQ(moe(named).routing.chosen, 3);
  EXPECT_EQ(moe(named).routing.score, kernels::RouterScore::kSoftmax);
  EXPECT_EQ(moe({{"norm_topk_prob", true}}).routing.score, kernels::RouterScore::kSoftmaxOfChosen);
  auto second = config_with("qwen3_moe", {{"num_local_experts", 6}});
  second.erase("num_experts");
  EXPECT_EQ(qwen3_moe().read(second).moe.experts, 6);
}

TEST(Config, QwenMoeSlidesEverywhere) {
  const auto read = qwen3_moe().read;
  EXPECT_THAT(
      windows(read(config_with("qwen3_moe", {{"sliding_window", 7}}))), ElementsAre(0, 0, 0, 0)
  );
  const Json on{{"sliding_window", 7}, {"use_sliding_window", true}, {"max_window_layers", 2}};
  EXPECT_THAT(windows(read(config_with("qwen3_moe", on))), ElementsAre(7, 7, 7, 7));
}

TEST(Config, LinearLayersNameBadValues) {
  const auto refused =
      [](ErrorCode code, const std::vector<std::string_view>& words, const Json& changes) {
        expect_error(code, words, [&] { check_config(config_with("qwen3_5", changes)); });
      };
  for (const auto* key :
       {"linear_num_key_heads",
        "linear_num_value_heads",
        "linear_key_head_dim",
        "linear_value_head_dim",
        "linear_conv_kernel_dim",
        "full_attention_interval"}) {
    refused(ErrorCode::kCorruptData, {key, "0"}, {{key, 0}});
    refused(ErrorCode::kCorruptData, {key, "100000000"}, {{key, 100'000'000}});
  }
  refused(
      ErrorCode::kCorruptData,
      {"linear_num_value_heads is 3", "linear_num_key_heads 2"},
      {{"linear_num_value_heads", 3}}
  );
  // A state of 256 GB.
  refused(
      ErrorCode::kUnsupported,
      {"linear_key_head_dim 4096", "above 16777216"},
      {{"linear_num_value_heads", 4096},
       {"linear_key_head_dim", 4096},
       {"linear_value_head_dim", 4096}}
  );
  refused(
      ErrorCode::kUnsupported,
      {"layer_types", "sliding_attention", "linear_attention"},
      {{"layer_types", Json::array({"sliding_attention", "x", "x", "x"})}}
  );
  refused(ErrorCode::kUnsupported, {"partial_rotary_factor"}, {{"partial_rotary_factor", 0.01}});
  refused(ErrorCode::kCorruptData, {"partial_rotary_factor"}, {{"partial_rotary_factor", 1.5}});
}

TEST(Config, QwenMoeNamesBadValues) {
  const auto refused = [](const std::vector<std::string_view>& words, const Json& changes) {
    expect_error(ErrorCode::kCorruptData, words, [&] {
      check_config(config_with("qwen3_moe", changes));
    });
  };
  for (const auto* key : {"num_experts", "num_experts_per_tok", "decoder_sparse_step"}) {
    refused({key, "0"}, {{key, 0}});
    refused({key, "-3"}, {{key, -3}});
  }
  refused({"moe_intermediate_size", "0"}, {{"moe_intermediate_size", 0}});
  refused({"num_experts", "1000000"}, {{"num_experts", 1000000}});
  refused({"num_experts", "many"}, {{"num_experts", "many"}});
  refused({"num_experts_per_tok", "7", "num_experts 4"}, {{"num_experts_per_tok", 7}});
  refused({"norm_topk_prob"}, {{"norm_topk_prob", 1}});
  refused({"mlp_only_layers", "3"}, {{"mlp_only_layers", 3}});
  refused({"mlp_only_layers", "one"}, {{"mlp_only_layers", Json::array({"one"})}});
}

TEST(Config, Gemma2SlidesInEvenLayers) {
  const auto read = gemma2().read;
  EXPECT_THAT(
      windows(read(config_with("gemma2", {{"sliding_window", 9}}))), ElementsAre(9, 0, 9, 0)
  );
  EXPECT_THAT(windows(read(config_with("gemma2", Json::object()))), ElementsAre(4096, 0, 4096, 0));
  EXPECT_THAT(
      windows(read(config_with("gemma2", {{"sliding_window", nullptr}}))), ElementsAre(0, 0, 0, 0)
  );
}

TEST(Config, Gemma3SlidesByPattern) {
  const auto read = gemma3().read;
  const auto config =
      read(config_with("gemma3_text", {{"sliding_window", 9}, {"sliding_window_pattern", 3}}));
  EXPECT_THAT(windows(config), ElementsAre(9, 9, 0, 9));
  EXPECT_EQ(config.layers[2].rope, 0U);
  EXPECT_EQ(config.layers[3].rope, 1U);
  EXPECT_EQ(config.ropes[0].theta, 1e6);
  EXPECT_EQ(config.ropes[1].theta, 1e4);
  EXPECT_THAT(
      windows(read(config_with("gemma3_text", {{"num_hidden_layers", 7}, {"sliding_window", 5}}))),
      ElementsAre(5, 5, 5, 5, 5, 0, 5)
  );
}

TEST(Config, Gemma3FindsItsTextPart) {
  auto text = small_config("gemma3_text");
  text.erase("vocab_size");
  text.erase("num_attention_heads");
  text.erase("num_key_value_heads");
  const auto config =
      gemma3().read({{"model_type", "gemma3"}, {"vocab_size", 77}, {"text_config", text}});
  EXPECT_EQ(config.model_type, "gemma3");
  EXPECT_EQ(config.vocab_size, 77);
  EXPECT_EQ(config.heads, 8);
  EXPECT_EQ(config.kv_heads, 4);
}

// The published E2B's: four sliding layers to a full one, the last 20 of 35 share.
TEST(Config, Gemma4SharesRowsOfTheLastLayerOfAKind) {
  const auto read = gemma4().read;
  const auto config = read(config_with(
      "gemma4_text",
      {{"num_hidden_layers", 35}, {"num_kv_shared_layers", 20}, {"sliding_window_pattern", 5}}
  ));
  EXPECT_EQ(config.cached_layers().size(), 15U);
  EXPECT_EQ(config.layers[14].shares_rows_of, std::nullopt);
  EXPECT_EQ(config.layers[15].shares_rows_of, 13);
  EXPECT_EQ(config.layers[19].shares_rows_of, 14);
  EXPECT_EQ(config.layers[34].shares_rows_of, 14);
  EXPECT_EQ(config.deepest_branch_layer(), 13);
  EXPECT_EQ(config.mlp(14).intermediate, 64);
  EXPECT_EQ(config.mlp(15).intermediate, 128);
  const auto single = read(config_with("gemma4_text", {{"use_double_wide_mlp", false}}));
  EXPECT_EQ(single.mlp(3).intermediate, 64);
  EXPECT_EQ(
      read(config_with("gemma4_text", {{"num_kv_shared_layers", 0}})).deepest_branch_layer(), 3
  );
}

TEST(Config, Gemma4sFullLayersAreLarger) {
  const auto read = gemma4().read;
  const auto config = read(config_with("gemma4_text", {{"sliding_window", 9}}));
  EXPECT_THAT(windows(config), ElementsAre(9, 0, 9, 0));
  EXPECT_EQ(config.attention(0).head_dim, 8);
  EXPECT_EQ(config.attention(0).kv_heads, 2);
  EXPECT_FALSE(config.attention(0).keys_are_values);
  EXPECT_EQ(config.attention(1).head_dim, 16);
  EXPECT_EQ(config.attention(1).kv_heads, 1);
  EXPECT_TRUE(config.attention(1).keys_are_values);
  EXPECT_EQ(config.attention(1).attend.scale, 1.0F);
  EXPECT_EQ(config.layers[0].rope, 0U);
  EXPECT_EQ(config.ropes[0].theta, 1e4);
  EXPECT_EQ(config.ropes[1].kind, nn::RopeKind::kProportional);
  EXPECT_EQ(config.ropes[1].theta, 1e6);
  EXPECT_EQ(config.ropes[1].part, 0.25);
  const auto distinct = read(config_with("gemma4_text", {{"attention_k_eq_v", false}}));
  EXPECT_EQ(distinct.attention(1).kv_heads, 2);
  EXPECT_EQ(
      read(config_with("gemma4_text", {{"global_head_dim", nullptr}})).attention(1).head_dim, 8
  );
  auto defaults = small_config("gemma3_text");
  defaults.update({{"num_hidden_layers", 7}, {"model_type", "gemma4_text"}});
  EXPECT_THAT(windows(read(defaults)), ElementsAre(512, 512, 512, 512, 512, 0, 0));
  EXPECT_EQ(read(defaults).attention(5).head_dim, 512);
  EXPECT_EQ(read(defaults).layer_input_size, 256);
  EXPECT_EQ(read(defaults).head, HeadChoice::kUntied);
  defaults.erase("tie_word_embeddings");
  EXPECT_EQ(read(defaults).head, HeadChoice::kTied);
  defaults["model_type"] = "gemma4_unified_text";
  EXPECT_EQ(read(defaults).layer_input_size, 0);
}

TEST(Config, Gemma4NamesBadValues) {
  const auto refused =
      [](ErrorCode code, const std::vector<std::string_view>& words, const Json& changes) {
        expect_error(code, words, [&] { check_config(config_with("gemma4_text", changes)); });
      };
  constexpr auto kCorrupt = ErrorCode::kCorruptData;
  constexpr auto kUnsupported = ErrorCode::kUnsupported;
  refused(kCorrupt, {"num_kv_shared_layers is 4", "0 to 3"}, {{"num_kv_shared_layers", 4}});
  refused(kCorrupt, {"num_kv_shared_layers is -1"}, {{"num_kv_shared_layers", -1}});
  refused(kCorrupt, {"num_kv_shared_layers is 3", "layer 1"}, {{"num_kv_shared_layers", 3}});
  refused(kUnsupported, {"global_head_dim is 7"}, {{"global_head_dim", 7}});
  refused(kCorrupt, {"global_head_dim", "0"}, {{"global_head_dim", 0}});
  refused(kUnsupported, {"partial_rotary_factor 0.25 of head_dim 2"}, {{"global_head_dim", 2}});
  refused(
      kCorrupt,
      {"num_attention_heads is 4", "num_global_key_value_heads 3"},
      {{"num_global_key_value_heads", 3}}
  );
  refused(kCorrupt, {"hidden_size_per_layer_input"}, {{"hidden_size_per_layer_input", -1}});
  refused(
      kUnsupported,
      {"hidden_size_per_layer_input 16777216 of 4 layers"},
      {{"hidden_size_per_layer_input", 1 << 24}}
  );
  refused(
      kUnsupported,
      {"vocab_size_per_layer_input is 49", "vocab_size 50"},
      {{"vocab_size_per_layer_input", 49}}
  );
  refused(
      kUnsupported,
      {"use_bidirectional_attention is \"all\""},
      {{"use_bidirectional_attention", "all"}}
  );
  const Json types{"full_attention", "full_attention", "full_attention", "sliding_attention"};
  refused(kUnsupported, {"layer_types ends with"}, {{"layer_types", types}});
  EXPECT_NO_THROW(check_config(config_with("gemma4", {{"use_bidirectional_attention", "vision"}})));
}

TEST(Config, ActivationsByName) {
  const auto of = [](Architecture architecture, const Json& changes) {
    return architecture.read(config_with("x", changes)).activation;
  };
  using kernels::Activation;
  EXPECT_EQ(of(llama(), Json::object()), Activation::kSilu);
  EXPECT_EQ(of(llama(), {{"hidden_act", "gelu"}}), Activation::kGelu);
  EXPECT_EQ(of(llama(), {{"hidden_act", "gelu_pytorch_tanh"}}), Activation::kGeluTanh);
  EXPECT_EQ(of(gemma(), {{"hidden_act", "gelu"}}), Activation::kGeluTanh);
  EXPECT_EQ(of(gemma2(), {{"hidden_act", "silu"}}), Activation::kGeluTanh);
  EXPECT_EQ(of(gemma2(), {{"hidden_activation", "gelu"}}), Activation::kGelu);
  expect_error(ErrorCode::kUnsupported, {"hidden_act", "relu"}, [&] {
    of(llama(), {{"hidden_act", "relu"}});
  });
}

TEST(Config, SoftCapsCanBeOff) {
  const Json off{{"attn_logit_softcapping", nullptr}, {"final_logit_softcapping", nullptr}};
  EXPECT_EQ(gemma2().read(config_with("gemma2", off)).attention_softcap, 0.0F);
  EXPECT_EQ(gemma2().read(config_with("gemma2", off)).final_softcap, 0.0F);
  auto config = config_with("gemma2", Json::object());
  config.erase("attn_logit_softcapping");
  config.erase("final_logit_softcapping");
  EXPECT_EQ(gemma2().read(config).attention_softcap, 50.0F);
  EXPECT_EQ(gemma2().read(config).final_softcap, 30.0F);
  EXPECT_EQ(gemma3().read(config).final_softcap, 0.0F);
}

TEST(Config, UnknownArchitecturesAreNamedWithTheKnownOnes) {
  expect_error(ErrorCode::kUnsupported, {"model_type", "mamba", "llama", "gemma3_text"}, [] {
    check_config({{"model_type", "mamba"}});
  });
  expect_error(ErrorCode::kCorruptData, {"model_type", "missing"}, [] {
    check_config(Json::object());
  });
  expect_error(ErrorCode::kCorruptData, {"model_type"}, [] { check_config({{"model_type", 3}}); });
  expect_error(ErrorCode::kCorruptData, {"object"}, [] { check_config(Json::array()); });
}

TEST(Config, EveryArchitectureReadsASmallConfiguration) {
  for (const auto type : supported_model_types()) {
    EXPECT_NO_THROW(check_config(small_config(type))) << type;
  }
}

std::string norm_eps_key(std::string_view type) {
  if (type.starts_with("lfm2")) {
    return "norm_eps";
  }
  if (type == "nemotron_h") {
    return "layer_norm_epsilon";
  }
  return type == "cohere2" ? "layer_norm_eps" : "rms_norm_eps";
}

// Some sizes have other fields, or none: those of layers that all have experts, of hybrids.
bool has_other_field(std::string_view type, std::string_view key) {
  if (key == "num_hidden_layers") {
    return type == "nemotron_h";
  }
  return key == "intermediate_size" &&
         (type.starts_with("qwen3_5_moe") || type.starts_with("lfm2") || type == "nemotron_h" ||
          type == "granitemoehybrid" || type.starts_with("llama4"));
}

TEST(Config, BadValuesAreNamed) {
  const auto refused = [](ErrorCode code, const std::string& key, const Json& value) {
    for (const auto type : supported_model_types()) {
      const bool is_unread = type == "granitemoehybrid" && key == "intermediate_size";
      if (is_unread || (key == "head_dim" && has_latents(type))) {
        continue;  // MLPs, or heads, have other fields.
      }
      SCOPED_TRACE(fmt::format("{}: {} {}", type, key, value.dump()));
      auto config = small_config(type);
      config[key] = value;
      expect_error(code, {key}, [&] { check_config(config); });
    }
  };
  const std::vector<Json> no_sizes{0, -1, 1.5, "many", Json::array(), 1e300, std::int64_t{1} << 62};
  for (const auto* key :
       {"hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "intermediate_size",
        "vocab_size",
        "head_dim",
        "max_position_embeddings"}) {
    for (const auto& value : no_sizes) {
      refused(ErrorCode::kCorruptData, key, value);
    }
  }
  refused(ErrorCode::kCorruptData, "num_key_value_heads", 3);
  refused(ErrorCode::kUnsupported, "head_dim", 7);
  for (const auto type : supported_model_types()) {
    const std::string key = norm_eps_key(type);
    for (const Json& value : {Json(-1e-6), Json("small")}) {
      SCOPED_TRACE(fmt::format("{}: {}", type, key));
      auto config = small_config(type);
      config[key] = value;
      expect_error(ErrorCode::kCorruptData, {key}, [&] { check_config(config); });
    }
  }
  refused(ErrorCode::kCorruptData, "tie_word_embeddings", "yes");
  refused(ErrorCode::kCorruptData, "rope_theta", 0);
  refused(
      ErrorCode::kUnsupported, "rope_scaling", {{"rope_scaling", 1}, {"rope_type", "rope_scaling"}}
  );
}

TEST(Config, MissingFieldsAreNamed) {
  for (const auto* key : {"hidden_size", "num_hidden_layers", "intermediate_size"}) {
    for (const auto type : supported_model_types()) {
      auto config = small_config(type);
      config.erase(key);
      if (has_other_field(type, key)) {
        continue;
      }
      SCOPED_TRACE(type);
      expect_error(ErrorCode::kCorruptData, {key}, [&] { check_config(config); });
    }
  }
}

TEST(Config, HeadsMustDivideTheHiddenSize) {
  auto config = small_config("llama");
  config.erase("head_dim");
  EXPECT_EQ(llama().read(config).head_dim, 8);
  config["num_attention_heads"] = 6;
  config["num_key_value_heads"] = 3;
  expect_error(ErrorCode::kCorruptData, {"hidden_size", "32", "6"}, [&] { check_config(config); });
}

TEST(Config, LayerTypesAreChecked) {
  const auto refused = [](ErrorCode code, const Json& types) {
    expect_error(code, {"layer_types"}, [&] {
      check_config(config_with("llama", {{"layer_types", types}, {"sliding_window", 4}}));
    });
  };
  refused(ErrorCode::kCorruptData, "full_attention");
  refused(ErrorCode::kCorruptData, {"full_attention"});
  refused(
      ErrorCode::kUnsupported,
      {"full_attention", "full_attention", "full_attention", "linear_attention"}
  );
  refused(ErrorCode::kUnsupported, {"full_attention", "full_attention", "full_attention", 3});
}

TEST(Config, WindowsAndPatternsAreChecked) {
  expect_error(ErrorCode::kCorruptData, {"sliding_window", "0"}, [] {
    check_config(config_with("mistral", {{"sliding_window", 0}}));
  });
  expect_error(ErrorCode::kCorruptData, {"sliding_window_pattern", "0"}, [] {
    check_config(config_with("gemma3_text", {{"sliding_window_pattern", 0}}));
  });
  expect_error(ErrorCode::kCorruptData, {"query_pre_attn_scalar", "-1"}, [] {
    check_config(config_with("gemma2", {{"query_pre_attn_scalar", -1}}));
  });
}

}  // namespace
}  // namespace saker::models

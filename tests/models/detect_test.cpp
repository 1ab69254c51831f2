// SPDX-License-Identifier: Apache-2.0
#include "saker/models/detect.h"

#include "saker/base/error.h"
#include "saker/models/model.h"

#include "tests/models/random_model.h"
#include "tests/support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace saker::models {
namespace {

using testing::expect_error;
using ::testing::HasSubstr;
using Names = std::vector<std::string>;

constexpr int kLayers = 2;

Names layers_with(std::initializer_list<std::string_view> modules) {
  Names names{"lm_head.weight", "model.embed_tokens.weight", "model.norm.weight"};
  for (int layer = 0; layer < kLayers; ++layer) {
    for (const auto module : modules) {
      names.push_back(fmt::format("model.layers.{}.{}.weight", layer, module));
    }
  }
  return names;
}

Names llama_names() {
  return layers_with(
      {"input_layernorm",
       "mlp.down_proj",
       "mlp.gate_proj",
       "mlp.up_proj",
       "post_attention_layernorm",
       "self_attn.k_proj",
       "self_attn.o_proj",
       "self_attn.q_proj",
       "self_attn.v_proj"}
  );
}

void add(Names& names, std::initializer_list<std::string_view> modules) {
  for (int layer = 0; layer < kLayers; ++layer) {
    for (const auto module : modules) {
      names.push_back(fmt::format("model.layers.{}.{}.weight", layer, module));
    }
  }
}

Names qwen3_names() {
  auto names = llama_names();
  add(names, {"self_attn.q_norm", "self_attn.k_norm"});
  return names;
}

Json config_of(const Json& model_type) {
  auto config = small_config("generic");
  config["model_type"] = model_type;
  return config;
}

// The architecture that runs.
std::string detected(const Json& model_type, const Names& tensors) {
  return json_string(detect_architecture(config_of(model_type), tensors).config, "model_type", "");
}

void expect_refused(const Json& model_type, const Names& tensors, std::string_view word) {
  SCOPED_TRACE(model_type.dump());
  expect_error(ErrorCode::kUnsupported, {"model_type", word, "llama", "gemma4_text"}, [&] {
    detect_architecture(config_of(model_type), tensors);
  });
}

TEST(Detect, NamesOfTheTableAreTakenAtTheirWord) {
  for (const auto type : supported_model_types()) {
    const auto result = detect_architecture(config_of(type), Names{"what.ever"});
    EXPECT_EQ(result.config["model_type"], type);
    EXPECT_EQ(result.warning, "");
  }
}

TEST(Detect, NamesThatContinueAFamilysRunAsIt) {
  EXPECT_EQ(detected("llama-3.2-instruct", llama_names()), "llama");
  EXPECT_EQ(detected("mistral_text", llama_names()), "mistral");
  EXPECT_EQ(detected("qwen2.5", llama_names()), "qwen2");
  EXPECT_EQ(detected("gemma_it", llama_names()), "gemma");
  EXPECT_EQ(detected("qwen3-thinking", qwen3_names()), "qwen3");
  auto gemma = llama_names();
  add(gemma, {"pre_feedforward_layernorm", "post_feedforward_layernorm"});
  EXPECT_EQ(detected("gemma2-it", gemma), "gemma2");
  add(gemma, {"self_attn.q_norm", "self_attn.k_norm"});
  EXPECT_EQ(detected("gemma3_270m", gemma), "gemma3_text");
  auto hybrid = qwen3_names();
  add(hybrid, {"linear_attn.in_proj_qkv", "linear_attn.norm"});
  hybrid.emplace_back("model.layers.0.linear_attn.A_log");
  EXPECT_EQ(detected("qwen3.5", hybrid), "qwen3_5");
  EXPECT_EQ(detected("qwen3_5_small", hybrid), "qwen3_5");
  const auto result = detect_architecture(config_of("qwen2.5"), llama_names());
  EXPECT_EQ(result.warning, "model_type is 'qwen2.5', which runs as qwen2");
  EXPECT_EQ(result.config["hidden_size"], 32);
}

// Whatever their tensors look like.
TEST(Detect, DesignsOfTheirOwnAreNeverTakenForAFamily) {
  for (const auto* type :
       {"qwen3_next", "qwen3_moe_x", "llama4", "llama4_text", "mistral3", "gemma3n", "gemma3n_text"
       }) {
    expect_refused(type, llama_names(), "another design");
    expect_refused(type, qwen3_names(), "another design");
  }
}

// A longer word is another name: it can only run as generic, or not at all.
TEST(Detect, APrefixEndsAtASeparator) {
  EXPECT_EQ(detected("llama5", llama_names()), "generic");
  EXPECT_EQ(detected("gemma7", llama_names()), "generic");
  expect_refused("qwen30", qwen3_names(), "self_attn.q_norm");
}

TEST(Detect, LlamasUnderNamesOfTheirOwnRunAsGeneric) {
  for (const Json& type : {Json("yi"), Json("")}) {
    const auto result = detect_architecture(config_of(type), llama_names());
    EXPECT_EQ(result.config["model_type"], "generic");
    EXPECT_THAT(result.warning, HasSubstr("runs as generic"));
  }
  auto config = config_of("yi");
  config.erase("model_type");
  EXPECT_THAT(
      detect_architecture(config, llama_names()).warning, HasSubstr("model_type is missing")
  );
  // A base model alone, quantized, with biases and what old exporters add.
  Names bare;
  for (const auto& name : llama_names()) {
    bare.push_back(name.starts_with("model.") ? name.substr(6) : name);
  }
  bare.emplace_back("layers.1.self_attn.rotary_emb.inv_freq");
  for (const auto* part : {"scales", "biases", "bias"}) {
    bare.push_back(fmt::format("layers.1.self_attn.q_proj.{}", part));
  }
  EXPECT_EQ(detected("yi", bare), "generic");
}

TEST(Detect, WhatIsNoLlamaIsRefusedWithTheNamesThatRun) {
  expect_refused("mamba", {"backbone.layers.0.mixer.A_log"}, "'backbone.layers.0.mixer.A_log'");
  expect_refused("", qwen3_names(), "missing");
  expect_refused("phi", {}, "'embed_tokens.weight'");
  for (std::size_t i = 0; i < llama_names().size(); ++i) {
    auto names = llama_names();
    if (names[i].starts_with("lm_head")) {
      continue;  // A tied one.
    }
    names.erase(names.begin() + static_cast<std::ptrdiff_t>(i));
    expect_refused("yi", names, "");
  }
  for (const auto* strange :
       {"model.layers.0.input_layernorm.bias",
        "model.layers.2.mlp.up_proj.weight",
        "model.layers.-1.mlp.up_proj.weight",
        "model.layers.99999999999999999999.mlp.up_proj.weight",
        "model.layers.0.mlp.up_proj.weight.",
        "model.layers.0",
        "model.layers.",
        "model.visual.patch_embed.weight",
        "lm_head.bias",
        "."}) {
    auto names = llama_names();
    names.emplace_back(strange);
    expect_refused("yi", names, "");
  }
}

TEST(Detect, ConfigurationsThatAreNone) {
  expect_error(ErrorCode::kCorruptData, {"model_type"}, [] {
    detect_architecture({{"model_type", 3}}, llama_names());
  });
  expect_error(ErrorCode::kCorruptData, {"object"}, [] {
    detect_architecture(Json::array(), llama_names());
  });
}

TEST(Detect, GenericRefusesFieldsThatAskForMore) {
  for (const auto& [key, value] :
       {std::pair{"residual_multiplier", Json(0.22)},
        std::pair{"no_rope_layers", Json{1, 0}},
        std::pair{"logits_scaling", Json(8)},
        std::pair{"layer_norm_eps", Json(1e-5)},
        std::pair{"rope_interleave", Json(true)},
        std::pair{"sliding_window", Json(8)}}) {
    auto config = small_config("generic");
    config.erase("layer_types");
    config[key] = value;
    expect_error(ErrorCode::kUnsupported, {key}, [&] { check_config(config); });
  }
  auto neutral = small_config("generic");
  neutral.erase("layer_types");
  neutral["residual_multiplier"] = 1.0;
  neutral["clip_qkv"] = nullptr;
  neutral["sliding_window"] = 8;
  neutral["use_sliding_window"] = false;
  EXPECT_NO_THROW(check_config(neutral));
  neutral.erase("use_sliding_window");
  neutral["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_NO_THROW(check_config(neutral));
}

}  // namespace
}  // namespace saker::models

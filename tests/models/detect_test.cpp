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

// Layers of linear attention and of attention by turns.
Names hybrid_names(std::string_view scope, std::string_view head) {
  Names names{fmt::format("{}.embed_tokens.weight", scope), fmt::format("{}.norm.weight", scope)};
  if (!head.empty()) {
    names.emplace_back(head);
  }
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string prefix = fmt::format("{}.layers.{}.", scope, layer);
    for (const auto* module :
         {"input_layernorm",
          "post_attention_layernorm",
          "mlp.gate_proj",
          "mlp.up_proj",
          "mlp.down_proj"}) {
      names.push_back(fmt::format("{}{}.weight", prefix, module));
    }
    const Names mixer =
        layer == 0 ? Names{"linear_attn.in_proj_qkv.weight", "linear_attn.in_proj_z.weight",
                           "linear_attn.in_proj_a.weight",   "linear_attn.in_proj_b.weight",
                           "linear_attn.out_proj.weight",    "linear_attn.conv1d.weight",
                           "linear_attn.norm.weight",        "linear_attn.A_log",
                           "linear_attn.dt_bias"}
                   : Names{"self_attn.q_proj.weight", "self_attn.k_proj.weight",
                           "self_attn.v_proj.weight", "self_attn.o_proj.weight",
                           "self_attn.q_norm.weight", "self_attn.k_norm.weight"};
    for (const auto& name : mixer) {
      names.push_back(prefix + name);
    }
  }
  return names;
}

// As checkpoints for images have it.
Json nested_config(const Json& model_type) {
  const Json config = config_of("text");
  Json text = config;
  text["model_type"] = "x_text";
  return {{"model_type", model_type}, {"text_config", text}, {"vision_config", Json::object()}};
}

TEST(Detect, NestedCheckpointsUnderOtherNames) {
  auto published = hybrid_names("model.language_model", "lm_head.weight");
  published.emplace_back("model.visual.blocks.0.attn.qkv.weight");
  published.emplace_back("mtp.fc.weight");
  auto converted = hybrid_names("language_model.model", "language_model.lm_head.weight");
  converted.emplace_back("vision_tower.blocks.0.attn.qkv.weight");
  converted.emplace_back("language_model.mtp.fc.weight");
  const auto bare = hybrid_names("language_model", "");
  for (const auto& names : {published, converted, bare}) {
    for (const auto* type : {"qwen3.5", "qwen3_5_x", "", "our_own"}) {
      SCOPED_TRACE(type);
      const auto result = detect_architecture(nested_config(type), names);
      EXPECT_EQ(result.config["model_type"], "qwen3_5");
      EXPECT_TRUE(result.config.contains("text_config"));
      EXPECT_THAT(result.warning, HasSubstr("runs as qwen3_5"));
    }
    auto unnamed = nested_config("x");
    unnamed.erase("model_type");
    EXPECT_EQ(detect_architecture(unnamed, names).config["model_type"], "qwen3_5");
    // The configuration of the text part alone.
    EXPECT_EQ(detected("qwen3_5_x", names), "qwen3_5");
  }
}

TEST(Detect, LinearAttentionIsFoundByItsTensors) {
  const auto flat = hybrid_names("model", "lm_head.weight");
  EXPECT_EQ(detected("our_own", flat), "qwen3_5");
  EXPECT_EQ(detected("", flat), "qwen3_5");
  // Without such a layer it may be anything.
  expect_refused("our_own", qwen3_names(), "q_norm");
}

TEST(Detect, TheTextPartsNameCountsWhereThereIsNoOther) {
  Names gemma;
  for (auto name : layers_with(
           {"input_layernorm",
            "mlp.down_proj",
            "mlp.gate_proj",
            "mlp.up_proj",
            "post_attention_layernorm",
            "pre_feedforward_layernorm",
            "post_feedforward_layernorm",
            "self_attn.k_norm",
            "self_attn.k_proj",
            "self_attn.o_proj",
            "self_attn.q_norm",
            "self_attn.q_proj",
            "self_attn.v_proj"}
       )) {
    gemma.push_back("language_model." + name);
  }
  gemma.emplace_back("multi_modal_projector.mm_input_projection_weight");
  auto config = nested_config("");
  config["text_config"]["model_type"] = "gemma3_text";
  EXPECT_EQ(detect_architecture(config, gemma).config["model_type"], "gemma3_text");
  EXPECT_EQ(
      detect_architecture(nested_config("gemma3_x"), gemma).config["model_type"], "gemma3_text"
  );
}

TEST(Detect, WhatIsNestedAndNoneOfTheseIsRefused) {
  const auto refused = [](const Json& type, const Names& names, std::string_view word) {
    expect_error(ErrorCode::kUnsupported, {"model_type", word}, [&] {
      detect_architecture(nested_config(type), names);
    });
  };
  Names llama;
  for (const auto& name : llama_names()) {
    llama.push_back("language_model." + name);
  }
  refused("llava", llama, "'language_model.lm_head.weight'");
  refused("qwen2_5_vl", llama, "'language_model.lm_head.weight'");
  refused("qwen3_vl_moe_x", hybrid_names("model.language_model", ""), "another design");
  auto strange = hybrid_names("model.language_model", "");
  strange.emplace_back("model.language_model.layers.0.mlp.router.weight");
  refused("qwen3_5_x", strange, "'model.language_model.");
  refused("", strange, "'model.language_model.");
  auto beside = hybrid_names("model.language_model", "");
  beside.emplace_back("model.layers.0.mlp.up_proj.weight");
  refused("", beside, "'model.");
  auto longer = nested_config("qwen3_5_x");
  longer["text_config"]["num_hidden_layers"] = kLayers + 1;
  expect_error(ErrorCode::kUnsupported, {"model_type"}, [&] {
    detect_architecture(longer, hybrid_names("model.language_model", ""));
  });
}

TEST(Detect, TablesOfTokensByOtherNames) {
  for (const std::string table : {"embed_tokens", "embedding", "token_embedding", "wte"}) {
    for (const std::string scope : {"", "model."}) {
      auto names = llama_names();
      for (auto& name : names) {
        if (name.starts_with("model.")) {
          name = scope + name.substr(6);
        }
        if (name.ends_with("embed_tokens.weight")) {
          name = scope + table + ".weight";
        }
      }
      EXPECT_EQ(detected("", names), "generic") << scope << table;
    }
  }
}

TEST(Detect, TheErrorSaysHowToAddOne) {
  expect_refused("phi", {}, "docs/adding-a-model.md");
  expect_refused("llama4_x", llama_names(), "docs/adding-a-model.md");
  expect_error(ErrorCode::kUnsupported, {"\"phi\"", "docs/adding-a-model.md"}, [] {
    check_config(config_of("phi"));
  });
}

// Whatever their tensors look like.
TEST(Detect, DesignsOfTheirOwnAreNeverTakenForAFamily) {
  for (const auto* type :
       {"qwen3_next_x",
        "qwen3_moe_x",
        "llama4_x",
        "llama4-text",
        "mistral3_x",
        "smollm3_x",
        "gemma3n",
        "gemma3n_text"}) {
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

// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_two_kinds.h"

#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/base/tensor.h"
#include "saker/load/checkpoint.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/gguf/gguf_model.h"
#include "saker/load/importers/lazy_tensor.h"

#include "tests/load/gguf/small_llama.h"
#include "tests/load/golden_tensors.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {
namespace {

using saker::testing::expect_error;
using saker::testing::gguf_number;
using saker::testing::GgufBuilder;
using saker::testing::TemporaryDir;

using Ints = std::vector<std::int32_t>;

// A golden model of Gemma 4 as a converter describes it.
struct Golden {
  std::string name;
  std::string scope;  // Before its tensors' names.
  std::map<std::string, std::uint32_t> sizes;
  std::map<std::string, Ints> lists;
  std::vector<bool> sliding;
  std::vector<float> factors;
};

// All keys but those in which the goldens differ.
Golden common(std::uint32_t layers) {
  Golden golden;
  golden.sizes = {
      {"block_count", layers},
      {"embedding_length", 36},
      {"context_length", 512},
      {"attention.head_count", 4},
      {"attention.sliding_window", 6},
      {"attention.key_length", 16},
      {"attention.value_length", 16},
      {"attention.key_length_swa", 8},
      {"attention.value_length_swa", 8},
      {"rope.dimension_count", 16},
      {"rope.dimension_count_swa", 8},
  };
  for (std::uint32_t i = 0; i < layers; ++i) {
    golden.sliding.push_back(i % 2 == 0);
  }
  golden.factors = {1, 1, 1e30F, 1e30F, 1e30F, 1e30F, 1e30F, 1e30F};
  return golden;
}

// Full layers without values and with other heads.
Golden large() {
  Golden golden = common(4);
  golden.name = "gemma4";
  golden.scope = "language_model.";
  golden.sizes["feed_forward_length"] = 48;
  golden.sizes["attention.shared_kv_layers"] = 0;
  golden.sizes["embedding_length_per_layer_input"] = 0;
  golden.lists["attention.head_count_kv"] = {2, 1, 2, 1};
  return golden;
}

// Layers that share rows and are twice as wide, and inputs for each layer.
Golden small() {
  Golden golden = common(6);
  golden.name = "gemma4_small";
  golden.sizes["attention.head_count_kv"] = 1;
  golden.sizes["attention.shared_kv_layers"] = 3;
  golden.sizes["embedding_length_per_layer_input"] = 10;
  golden.lists["feed_forward_length"] = {48, 48, 48, 96, 96, 96};
  return golden;
}

std::string gguf_name(const std::string& name) {
  static const std::map<std::string_view, std::string_view> kNames = {
      {"input_layernorm.weight", "attn_norm.weight"},
      {"layer_scalar", "layer_output_scale.weight"},
      {"mlp.down_proj.weight", "ffn_down.weight"},
      {"mlp.gate_proj.weight", "ffn_gate.weight"},
      {"mlp.up_proj.weight", "ffn_up.weight"},
      {"per_layer_input_gate.weight", "inp_gate.weight"},
      {"per_layer_projection.weight", "proj.weight"},
      {"post_attention_layernorm.weight", "post_attention_norm.weight"},
      {"post_feedforward_layernorm.weight", "post_ffw_norm.weight"},
      {"post_per_layer_input_norm.weight", "post_norm.weight"},
      {"pre_feedforward_layernorm.weight", "ffn_norm.weight"},
      {"self_attn.k_norm.weight", "attn_k_norm.weight"},
      {"self_attn.k_proj.weight", "attn_k.weight"},
      {"self_attn.o_proj.weight", "attn_output.weight"},
      {"self_attn.q_norm.weight", "attn_q_norm.weight"},
      {"self_attn.q_proj.weight", "attn_q.weight"},
      {"self_attn.v_proj.weight", "attn_v.weight"},
      {"model.embed_tokens.weight", "token_embd.weight"},
      {"model.embed_tokens_per_layer.weight", "per_layer_token_embd.weight"},
      {"model.norm.weight", "output_norm.weight"},
      {"model.per_layer_model_projection.weight", "per_layer_model_proj.weight"},
      {"model.per_layer_projection_norm.weight", "per_layer_proj_norm.weight"},
  };
  if (const auto layer = numbered_name(name, "model.layers.")) {
    return "blk." + std::to_string(layer->number) + "." + std::string(kNames.at(layer->rest));
  }
  return std::string(kNames.at(name));
}

TensorMap tensors_of(const Golden& golden) {
  TensorMap tensors;
  for (const auto& [name, tensor] :
       read_safetensors(golden_dir(golden.name) / "model.safetensors")) {
    tensors.emplace(name.substr(golden.scope.size()), tensor);
  }
  return tensors;
}

GgufBuilder file_of(const Golden& golden) {
  GgufBuilder builder;
  builder.string("general.architecture", "gemma4")
      .number("gemma4.attention.layer_norm_rms_epsilon", 1e-6F)
      .number("gemma4.rope.freq_base", 10000.0F)
      .number("gemma4.rope.freq_base_swa", 1000.0F)
      .number("gemma4.final_logit_softcapping", 6.0F);
  for (const auto& [key, value] : golden.sizes) {
    builder.integer("gemma4." + key, value);
  }
  for (const auto& [key, values] : golden.lists) {
    builder.integers("gemma4." + key, values);
  }
  std::string flags =
      gguf_number<std::uint32_t>(7) + gguf_number<std::uint64_t>(golden.sliding.size());
  for (const bool slides : golden.sliding) {
    flags.push_back(slides ? '\1' : '\0');
  }
  builder.raw("gemma4.attention.sliding_window_pattern", 9, flags);
  if (!golden.factors.empty()) {
    builder.tensor(
        "rope_freqs.weight",
        {golden.factors.size()},
        kF32,
        bytes_as(golden.factors, DType::kFloat32)
    );
  }
  for (const auto& [name, tensor] : tensors_of(golden)) {
    const std::vector<std::uint64_t> shape(tensor.shape.rbegin(), tensor.shape.rend());
    builder.tensor(gguf_name(name), shape, kF32, bytes_as(to_floats(tensor), DType::kFloat32));
  }
  return builder;
}

TEST(GgufTwoKindsTest, AConvertersFileIsTheFolder) {
  const TemporaryDir dir;
  for (const Golden& golden : {large(), small()}) {
    const auto path = dir.write("model.gguf", file_of(golden).file());
    const auto model = open_gguf(path);
    const Json folder = read_json_file(golden_dir(golden.name) / "config.json");
    const Json& text = folder.contains("text_config") ? folder["text_config"] : folder;
    for (const auto& [key, value] : text.items()) {
      if (key != "vocab_size_per_layer_input" && model.config.contains(key)) {
        EXPECT_EQ(model.config[key], value) << golden.name << ' ' << key;
      }
    }
    EXPECT_EQ(model.config["rope_parameters"], text["rope_parameters"]);
    EXPECT_EQ(model.config["layer_types"], text["layer_types"]);
    EXPECT_EQ(model.config["global_head_dim"], 16);
    EXPECT_EQ(model.config["use_double_wide_mlp"], text["use_double_wide_mlp"]);
    const auto tensors = importers::make_tensors(model);
    const auto expected = tensors_of(golden);
    ASSERT_EQ(tensors.size(), expected.size()) << golden.name;
    for (const auto& [name, tensor] : expected) {
      ASSERT_TRUE(tensors.contains(name)) << name;
      EXPECT_EQ(tensors.at(name).shape, tensor.shape) << name;
      EXPECT_EQ(to_floats(tensors.at(name)), to_floats(tensor)) << name;
    }
    const auto loaded = load_checkpoint(path);
    EXPECT_NE(loaded.model, nullptr);
    EXPECT_EQ(loaded.warnings, model.notes);
  }
}

// The values of rope_freqs.weight may still be to come.
TEST(GgufTwoKindsTest, OpensWithoutValues) {
  const TemporaryDir dir;
  const auto path = dir.write("model.gguf", file_of(large()).file());
  const auto model = open_gguf(path, Values::kToCome);
  EXPECT_EQ(model.config["rope_parameters"]["full_attention"]["partial_rotary_factor"], 0.25);
}

void expect_refused(
    const std::function<void(Golden&)>& change,
    ErrorCode code,
    const std::vector<std::string_view>& words,
    Golden golden = small()
) {
  const TemporaryDir dir;
  change(golden);
  const auto path = dir.write("model.gguf", file_of(golden).file());
  expect_error(code, words, [&] { load_checkpoint(path); });
}

TEST(GgufTwoKindsTest, RefusesListsThatDoNotFit) {
  constexpr auto kCorrupt = ErrorCode::kCorruptData;
  constexpr auto kUnsupported = ErrorCode::kUnsupported;
  const auto widths = [](const Ints& list) {
    return [list](Golden& golden) { golden.lists["feed_forward_length"] = list; };
  };
  expect_refused(widths({48, 48}), kCorrupt, {"feed_forward_length", "2 numbers", "6 integers"});
  expect_refused(widths({}), kCorrupt, {"feed_forward_length", "0 numbers"});
  expect_refused(
      widths({48, 40, 48, 96, 96, 96}), kUnsupported, {"feed_forward_length", "40 in layer 1", "48"}
  );
  expect_refused(
      widths({48, 48, 48, 48, 96, 96}), kUnsupported, {"feed_forward_length", "layer 3", "96"}
  );
  expect_refused(
      [](Golden& golden) { golden.lists.clear(); }, kCorrupt, {"feed_forward_length", "missing"}
  );
  expect_refused(
      [](Golden& golden) { golden.sliding.pop_back(); },
      kCorrupt,
      {"sliding_window_pattern", "5 entries", "6 layers"}
  );
  expect_refused(
      [](Golden& golden) { golden.sliding.clear(); },
      kCorrupt,
      {"sliding_window_pattern", "0 entries"}
  );
  expect_refused(
      [](Golden& golden) { golden.lists["attention.head_count_kv"] = {2, 1, 1, 1}; },
      kUnsupported,
      {"head_count_kv", "1 in layer 2", "2 as in other layers"},
      large()
  );
  expect_refused(
      [](Golden& golden) {
        golden.sizes.erase("attention.head_count_kv");
        golden.lists["attention.head_count_kv"] = {1, 2, 1, 2, 1, 2};
      },
      kUnsupported,
      {"head_count_kv", "2 in full layers", "1 as in sliding ones"}
  );
}

TEST(GgufTwoKindsTest, RefusesOtherSizes) {
  constexpr auto kCorrupt = ErrorCode::kCorruptData;
  constexpr auto kUnsupported = ErrorCode::kUnsupported;
  const auto size = [](std::string_view key, std::uint32_t value) {
    return [key = std::string(key), value](Golden& golden) { golden.sizes[key] = value; };
  };
  expect_refused(size("attention.shared_kv_layers", 6), kUnsupported, {"shared_kv_layers", "6"});
  expect_refused(size("attention.value_length_swa", 4), kUnsupported, {"value_length_swa", "4"});
  expect_refused(size("attention.value_length", 8), kUnsupported, {"value_length'", "8"});
  expect_refused(size("rope.dimension_count", 4), kUnsupported, {"rope.dimension_count'", "4"});
  expect_refused(size("attention.key_length", 0), kUnsupported, {"attention.key_length'", "0"});
  expect_refused(size("block_count", 1U << 31), kCorrupt, {"sliding_window_pattern"});
  expect_refused(size("expert_count", 128), kCorrupt, {"expert_used_count", "missing"});
  expect_refused(
      [](Golden& golden) { golden.sizes.erase("attention.key_length_swa"); },
      kCorrupt,
      {"attention.key_length_swa", "missing"}
  );
}

TEST(GgufTwoKindsTest, RefusesOtherRotations) {
  const auto factors = [](const std::vector<float>& list) {
    return [list](Golden& golden) { golden.factors = list; };
  };
  constexpr auto kUnsupported = ErrorCode::kUnsupported;
  expect_refused(factors({}), ErrorCode::kCorruptData, {"rope_freqs.weight"});
  expect_refused(factors({1, 1, 1e30F}), kUnsupported, {"3 numbers", "expected 8"});
  expect_refused(factors({1, 1, 2, 2, 2, 2, 2, 2}), kUnsupported, {"rope_freqs.weight", "first 2"});
  expect_refused(factors(std::vector<float>(8, 1e30F)), kUnsupported, {"rope_freqs.weight"});
}

}  // namespace
}  // namespace saker::load::gguf

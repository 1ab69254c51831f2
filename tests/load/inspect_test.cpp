// SPDX-License-Identifier: Apache-2.0
#include "saker/load/inspect/inspect.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/load/inspect/inspection_report.h"

#include "tests/load/golden_models.h"
#include "tests/support/expect_error.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_dir.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

using testing::expect_error;
using testing::f32_tensor;
using ::testing::HasSubstr;
using testing::raw_bytes;
using testing::safetensors_file;
using testing::TemporaryDir;

Json llama_config() {
  return parse_json(
      R"({"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":64,
          "intermediate_size":96,"num_hidden_layers":2,"num_attention_heads":4,
          "num_key_value_heads":2,"vocab_size":32,"max_position_embeddings":512})",
      "test"
  );
}

testing::RawTensor zeros(const std::string& name, std::vector<std::int64_t> shape) {
  std::size_t count = 1;
  for (const std::int64_t size : shape) {
    count *= static_cast<std::size_t>(size);
  }
  return f32_tensor(name, std::move(shape), std::vector<float>(count));
}

// All that llama_config's model takes.
std::vector<testing::RawTensor> llama_tensors() {
  std::vector<testing::RawTensor> tensors{
      zeros("model.embed_tokens.weight", {32, 64}), zeros("model.norm.weight", {64})
  };
  for (int i = 0; i < 2; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    tensors.push_back(zeros(layer + "input_layernorm.weight", {64}));
    tensors.push_back(zeros(layer + "post_attention_layernorm.weight", {64}));
    tensors.push_back(zeros(layer + "self_attn.q_proj.weight", {64, 64}));
    tensors.push_back(zeros(layer + "self_attn.k_proj.weight", {32, 64}));
    tensors.push_back(zeros(layer + "self_attn.v_proj.weight", {32, 64}));
    tensors.push_back(zeros(layer + "self_attn.o_proj.weight", {64, 64}));
    tensors.push_back(zeros(layer + "mlp.gate_proj.weight", {96, 64}));
    tensors.push_back(zeros(layer + "mlp.up_proj.weight", {96, 64}));
    tensors.push_back(zeros(layer + "mlp.down_proj.weight", {64, 96}));
  }
  return tensors;
}

constexpr std::int64_t kLlamaWeights =
    32 * 64 + 64 + 2 * (2 * 64 + 2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64);

// [2, 64] in `bits` bits, groups of 64.
std::vector<testing::RawTensor> quantized(const std::string& name, std::int64_t bits) {
  const std::int64_t words = 64 * bits / 32;
  return {
      {name + ".weight", "U32", {2, words}, std::string(static_cast<std::size_t>(8 * words), 'w')},
      {name + ".scales", "BF16", {2, 1}, "ssss"},
      {name + ".biases", "BF16", {2, 1}, "bbbb"},
  };
}

class InspectTest : public ::testing::Test {
 protected:
  void write_config(const Json& config) const { dir_.write("config.json", config.dump()); }

  Inspection inspect_dir() const { return inspect(dir_.path()); }

  TemporaryDir dir_;
};

TEST_F(InspectTest, AModel) {
  write_config(llama_config());
  dir_.write("tokenizer.json", "{}");
  dir_.write("generation_config.json", R"({"do_sample":true,"temperature":0.6,"top_k":20})");
  dir_.write("tokenizer_config.json", R"({"chat_template":"{{ messages }}"})");
  auto tensors = llama_tensors();
  tensors.push_back({"n", "BF16", {5}, "0123456789"});
  dir_.write("model.safetensors", safetensors_file(tensors));
  const Inspection result = inspect_dir();
  EXPECT_EQ(result.kind, PathKind::kModel);
  EXPECT_TRUE(result.runnable);
  EXPECT_EQ(result.reason, "");
  EXPECT_EQ(result.parameters, kLlamaWeights + 5);
  EXPECT_EQ(result.dtypes.at("F32").bytes, 4U * kLlamaWeights);
  EXPECT_EQ(result.dtypes.at("BF16").elements, 5);
  ASSERT_TRUE(result.model);
  EXPECT_EQ(result.model->model_type, "llama");
  EXPECT_EQ(result.model->architecture, "LlamaForCausalLM");
  EXPECT_EQ(result.model->layers, 2);
  EXPECT_EQ(result.model->heads, 4);
  EXPECT_EQ(result.model->kv_heads, 2);
  EXPECT_EQ(result.model->context_length, 512);
  EXPECT_TRUE(result.model->has_tokenizer);
  EXPECT_TRUE(result.model->has_chat_template);
  const std::string text = inspection_text(result);
  for (const char* word :
       {"llama model", "runs          yes", "LlamaForCausalLM", "512", "temperature 0.6, top_k 20"
       }) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
  }
  const Json json = inspection_json(result);
  EXPECT_EQ(json["model"]["layers"], 2);
  EXPECT_EQ(json["runnable"], true);
  EXPECT_EQ(json["tensors"].size(), tensors.size());
}

// Yes only for what loads: every tensor is there, in its shape.
TEST_F(InspectTest, TensorsDecideWhetherAModelRuns) {
  write_config(llama_config());
  const auto reason_of = [&](const std::vector<testing::RawTensor>& tensors) {
    dir_.write("model.safetensors", safetensors_file(tensors));
    const Inspection result = inspect_dir();
    EXPECT_EQ(result.runnable, result.reason.empty());
    return result.reason;
  };
  const auto whole = llama_tensors();
  EXPECT_EQ(reason_of(whole), "");
  for (std::size_t i = 1; i < whole.size(); ++i) {
    auto tensors = whole;
    tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(i));
    const std::string name = whole[i].name.substr(std::string_view("model.").size());
    EXPECT_EQ(reason_of(tensors), "[" + name + "] tensor is missing");
    tensors = whole;
    tensors[i] = zeros(whole[i].name, {3, 64});
    EXPECT_THAT(reason_of(tensors), HasSubstr("[" + whole[i].name + "] shape [3, 64], expected ["));
  }
  auto packed = whole;
  packed[4] = {packed[4].name, "U32", {64, 8}, std::string(64 * 8 * 4, 'w')};
  EXPECT_THAT(reason_of(packed), HasSubstr("scales] tensor is missing"));
  packed[4] = {packed[4].name, "U32", {64, 7}, std::string(64 * 7 * 4, 'w')};
  EXPECT_THAT(reason_of(packed), HasSubstr("expected codes of 64 weights a row"));
  Json config = llama_config();
  config["tie_word_embeddings"] = false;
  write_config(config);
  EXPECT_THAT(reason_of(whole), HasSubstr("lm_head"));
}

TEST_F(InspectTest, AllGoldenModelsRun) {
  for (const char* name : kGoldenModels) {
    const Inspection result =
        inspect(std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden" / name);
    EXPECT_EQ(result.reason, "") << name;
    EXPECT_TRUE(result.memory && result.memory->weight_bytes > 0) << name;
  }
}

TEST_F(InspectTest, SaysTheMemoryThatAModelNeeds) {
  write_config(llama_config());
  dir_.write("model.safetensors", safetensors_file(llama_tensors()));
  const Inspection result = inspect_dir();
  ASSERT_TRUE(result.memory);
  const MemoryNeed& need = *result.memory;
  EXPECT_EQ(need.weight_bytes, 4U * kLlamaWeights);
  EXPECT_EQ(need.tokens, 512);  // The whole context.
  EXPECT_EQ(need.token_bytes, 2U * 2 * 2 * 16 * sizeof(float));
  EXPECT_EQ(need.cache_bytes, 512 * need.token_bytes);
  EXPECT_TRUE(need.fits());
  const std::string text = inspection_text(result);
  EXPECT_THAT(text, HasSubstr("of cache for 512 tokens"));
  EXPECT_THAT(text, HasSubstr("fits          yes, this machine has"));
  EXPECT_EQ(inspection_json(result)["memory"]["weight_bytes"], need.weight_bytes);
  EXPECT_EQ(inspect(dir_.path(), 8).memory->weight_bytes, need.weight_bytes);
  EXPECT_LT(inspect(dir_.path(), 8).memory->token_bytes, need.token_bytes);
}

TEST_F(InspectTest, FindsTemplatesWhereAChatDoes) {
  write_config(llama_config());
  dir_.write("model.safetensors", safetensors_file({f32_tensor("a", {1}, {0.0F})}));
  EXPECT_FALSE(inspect_dir().model->has_chat_template);
  dir_.write("chat_template.json", R"({"chat_template":"{{ messages }}"})");
  EXPECT_TRUE(inspect_dir().model->has_chat_template);
  std::filesystem::remove(dir_.path() / "chat_template.json");
  dir_.write("additional_chat_templates/default.jinja", "{{ messages }}");
  EXPECT_TRUE(inspect_dir().model->has_chat_template);
}

TEST_F(InspectTest, CachesOfAModel) {
  Json config = llama_config();
  config["model_type"] = "qwen2";
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 1;
  config["sliding_window"] = 100;
  write_config(config);
  const auto write_table = [&](const char* dtype, std::size_t element) {
    dir_.write(
        "model.safetensors",
        safetensors_file({{"model.embed_tokens.weight", dtype, {4}, std::string(4 * element, '0')}})
    );
  };
  write_table("BF16", 2);
  EXPECT_TRUE(inspect_dir().caches.empty());
  const auto row_bytes = [&](int bits) {
    return inspect(dir_.path(), bits).caches.at(0).token_bytes;
  };
  const std::size_t elements = row_bytes(16) / 2;
  // A scale and a bias for each head's group, keys and values.
  const std::size_t terms = std::size_t{2} * 2 * 2 * 2;
  const std::size_t offsets = std::size_t{2} * 128 / 64;  // Of each head's keys, two lines a page.
  EXPECT_EQ(row_bytes(8), elements + terms + offsets);
  EXPECT_EQ(row_bytes(4), elements / 2 + terms + offsets);
  const Inspection result = inspect(dir_.path(), 4);
  const std::size_t bytes = result.caches[0].token_bytes;
  EXPECT_EQ(
      result.caches,
      (std::vector<CacheLayer>{
          {"QuantizedKVCache", 4, {}, bytes}, {"QuantizedRotatingKVCache", 4, 100, bytes}
      })
  );
  const std::string text = inspection_text(result);
  EXPECT_NE(text.find("layer 0: QuantizedKVCache, 4 bits"), std::string::npos) << text;
  const Json json = inspection_json(result);
  EXPECT_EQ(json["caches"][1]["max_size"], 100);
  EXPECT_EQ(json["caches"][0]["max_size"], nullptr);
  EXPECT_EQ(json["caches"][1]["token_bytes"], bytes);
  write_table("F32", 4);
  EXPECT_EQ(row_bytes(16), elements * 4);
  expect_error(ErrorCode::kInvalidArgument, {"safetensors", "a model"}, [&] {
    inspect(dir_.path() / "model.safetensors", 8);
  });
}

// Three rows of 64 channels before the convolution, and [4, 6, 10].
TEST_F(InspectTest, LinearLayersKeepAState) {
  const Inspection result = inspect(SAKER_SOURCE_DIR "/tests/golden/qwen3_5", 8);
  constexpr std::size_t kState = (3 * 64 + 4 * 6 * 10) * sizeof(float);
  ASSERT_EQ(result.caches.size(), 3U);
  EXPECT_EQ(result.caches[1], (CacheLayer{"ArraysCache", 16, {}, 0, kState}));
  EXPECT_EQ(result.caches[2].kind, "QuantizedKVCache");
  const std::string text = inspection_text(result);
  EXPECT_NE(text.find("layers 0 to 1: ArraysCache, a state of 1728 bytes"), std::string::npos);
  EXPECT_EQ(inspection_json(result)["caches"][0]["state_bytes"], kState);
}

// Three of six layers keep rows: of heads of 8, 16 and 8 elements.
TEST_F(InspectTest, LayersThatShareRowsKeepNone) {
  const Inspection result = inspect(SAKER_SOURCE_DIR "/tests/golden/gemma4_small", 16);
  EXPECT_TRUE(result.runnable);
  const CacheLayer sliding{"RotatingKVCache", 16, 6, 2 * 8 * sizeof(float)};
  const CacheLayer full{"KVCache", 16, {}, 2 * 16 * sizeof(float)};
  EXPECT_EQ(result.caches, (std::vector<CacheLayer>{sliding, full, sliding}));
}

TEST_F(InspectTest, CountsPackedWeights) {
  Json config = llama_config();
  config["quantization"] = {{"bits", 4}, {"group_size", 64}, {"b", {{"bits", 8}}}};
  write_config(config);
  auto tensors = quantized("a", 4);
  for (const auto& tensor : quantized("b", 8)) {
    tensors.push_back(tensor);
  }
  tensors.push_back(f32_tensor("c.biases", {3}, {1, 2, 3}));  // Of no packed weight.
  dir_.write("model.safetensors", safetensors_file(tensors));
  const Inspection result = inspect_dir();
  EXPECT_EQ(result.parameters, 128 + 128 + 3);
  EXPECT_EQ(result.model->quantization, "4 bits, groups of 64, affine, but 1 module");
}

TEST_F(InspectTest, SaysWhyAModelDoesNotRun) {
  const auto reason_with = [&](std::string_view key, const Json& value) {
    Json config = llama_config();
    config[std::string(key)] = value;
    write_config(config);
    const Inspection result = inspect_dir();
    EXPECT_FALSE(result.runnable);
    EXPECT_NE(inspection_text(result).find("no: " + result.reason), std::string::npos);
    return result.reason;
  };
  dir_.write("model.safetensors", safetensors_file({f32_tensor("a", {1}, {1})}));
  EXPECT_NE(reason_with("model_type", "mamba9").find("mamba9"), std::string::npos);
  EXPECT_NE(reason_with("hidden_size", -3).find("-3"), std::string::npos);
  EXPECT_NE(reason_with("hidden_size", 1e300).find("hidden_size"), std::string::npos);
  dir_.write("model.safetensors", safetensors_file({{"w", "U8", {1, 2}, "ab"}}));
  EXPECT_NE(
      reason_with("quantization_config", {{"quant_method", "hqq"}}).find("'hqq'"), std::string::npos
  );
  dir_.write("model.safetensors", safetensors_file({{"a.weight", "F8_E4M3", {2}, "ab"}}));
  EXPECT_NE(reason_with("vocab_size", 32).find("F8_E4M3"), std::string::npos);
  dir_.write("model.safetensors", safetensors_file({f32_tensor("a", {1}, {1})}));
  EXPECT_NE(reason_with("vocab_size", 32).find("embed_tokens.weight"), std::string::npos);
}

TEST_F(InspectTest, SaysAsWhatAModelRuns) {
  const std::filesystem::path golden = SAKER_SOURCE_DIR "/tests/golden/llama";
  std::filesystem::copy_file(golden / "model.safetensors", dir_.path() / "model.safetensors");
  Json config = read_json_file(golden / "config.json");
  config["model_type"] = "llama_tiny";
  write_config(config);
  Inspection result = inspect(dir_.path(), 16);
  EXPECT_TRUE(result.runnable);
  ASSERT_EQ(result.warnings.size(), 1U);
  EXPECT_NE(result.warnings[0].find("runs as llama"), std::string::npos);
  EXPECT_EQ(result.model->model_type, "llama_tiny");
  EXPECT_EQ(result.caches.size(), 2U);
  config["model_type"] = "tiny";
  write_config(config);
  result = inspect(dir_.path(), 16);
  EXPECT_TRUE(result.runnable);
  ASSERT_EQ(result.warnings.size(), 1U);
  EXPECT_NE(result.warnings[0].find("runs as generic"), std::string::npos);
  EXPECT_NE(inspection_text(result).find("runs as generic"), std::string::npos);
}

TEST_F(InspectTest, DraftsDoNotRunAlone) {
  const std::string goldens = SAKER_SOURCE_DIR "/tests/golden/";
  const auto reason_of = [&](const std::string& name) { return inspect(goldens + name).reason; };
  EXPECT_THAT(reason_of("dflash/legacy"), HasSubstr("DFlash draft: runs beside its model"));
  EXPECT_THAT(reason_of("eagle3/flat"), HasSubstr("EAGLE-3 head: runs beside its model"));
  EXPECT_THAT(reason_of("eagle3/speculators"), HasSubstr("EAGLE-3 head: runs beside its model"));
  EXPECT_THAT(reason_of("assistant/plain"), HasSubstr("assistant: runs beside its model"));
  EXPECT_TRUE(inspect(goldens + "mtp/qwen3").runnable);
  const Json config = read_json_file(goldens + "mtp/qwen3/config.json");
  write_config(config);
  dir_.write(
      "model.safetensors", safetensors_file({f32_tensor("mtp.pre_fc_norm_hidden.weight", {1}, {1})})
  );
  EXPECT_THAT(inspect_dir().reason, HasSubstr("MTP head"));
}

TEST_F(InspectTest, AFolderWithoutWeights) {
  write_config(llama_config());
  const Inspection result = inspect_dir();
  EXPECT_FALSE(result.runnable);
  EXPECT_NE(result.reason.find("no model*.safetensors"), std::string::npos);
}

TEST_F(InspectTest, BrokenFilesAreErrors) {
  dir_.write("config.json", "{\"a\":");
  expect_error(ErrorCode::kCorruptData, {"config.json", "byte"}, [&] { inspect_dir(); });
  dir_.write("config.json", "[]");
  expect_error(ErrorCode::kCorruptData, {"config.json", "an array of 0"}, [&] { inspect_dir(); });
  write_config(llama_config());
  dir_.write("model.safetensors", "short");
  expect_error(ErrorCode::kCorruptData, {"model.safetensors", "too short"}, [&] { inspect_dir(); });
  expect_error(ErrorCode::kNotFound, {"none"}, [&] { inspect(dir_.path() / "none"); });
  const auto text = dir_.write("notes.txt", "These are notes, and no tensors.");
  expect_error(ErrorCode::kCorruptData, {"notes.txt"}, [&] { inspect(text); });
  const TemporaryDir empty;
  expect_error(ErrorCode::kInvalidArgument, {"neither config.json nor"}, [&] {
    inspect(empty.path());
  });
}

TEST_F(InspectTest, AdaptersOfLlamaCpp) {
  saker::testing::GgufBuilder file;
  file.string("general.architecture", "qwen2").string("general.type", "adapter");
  file.string("adapter.type", "lora").number("adapter.lora.alpha", 6.0F);
  file.string("general.base_model.0.name", "Base");
  file.tensor("blk.0.ffn_up.weight.lora_a", {2, 2}, 0, std::string(16, '\0'));
  file.tensor("blk.0.ffn_up.weight.lora_b", {2, 2}, 0, std::string(16, '\0'));
  dir_.write("a.gguf", file.file());
  const Inspection result = inspect(dir_.path() / "a.gguf");
  EXPECT_EQ(result.kind, PathKind::kAdapter);
  EXPECT_EQ(result.adapter->type, "GGUF lora");
  EXPECT_EQ(result.adapter->base_model, "Base");
  EXPECT_EQ(result.adapter->rank, 2);
  EXPECT_EQ(result.adapter->scale, 3.0);
  EXPECT_EQ(result.parameters, 8);
  EXPECT_TRUE(result.runnable);
  EXPECT_THAT(inspection_text(result), ::testing::HasSubstr("2 ffn_up"));
}

TEST_F(InspectTest, Adapters) {
  dir_.write("adapters.safetensors", safetensors_file({f32_tensor("q.lora_a", {1, 2}, {1, 2})}));
  dir_.write(
      "adapter_config.json",
      R"({"fine_tune_type":"dora","model":"org/base","lora_parameters":{"rank":8,"scale":20.0}})"
  );
  Inspection result = inspect_dir();
  EXPECT_EQ(result.kind, PathKind::kAdapter);
  EXPECT_EQ(result.adapter->type, "dora");
  EXPECT_EQ(result.adapter->base_model, "org/base");
  EXPECT_EQ(result.adapter->rank, 8);
  EXPECT_EQ(result.adapter->scale, 20.0);
  EXPECT_EQ(result.parameters, 2);
  EXPECT_TRUE(result.runnable);

  dir_.write(
      "adapter_config.json",
      R"({"peft_type":"LORA","r":16,"lora_alpha":32,"base_model_name_or_path":"org/base"})"
  );
  result = inspect_dir();
  EXPECT_EQ(result.adapter->type, "PEFT LORA");
  EXPECT_EQ(result.adapter->scale, 2.0);
  dir_.write(
      "adapter_config.json", R"({"peft_type":"LORA","r":16,"lora_alpha":32,"use_rslora":true})"
  );
  EXPECT_EQ(inspect_dir().adapter->scale, 8.0);
  EXPECT_THAT(inspection_text(result), HasSubstr("changes       tensors of 1 q\n"));
}

TEST_F(InspectTest, PromptCachesOfBothForms) {
  const std::vector<testing::RawTensor> tensors = {f32_tensor("0.0", {1}, {1})};
  const auto current = dir_.write(
      "new.safetensors",
      safetensors_file(
          tensors,
          {{"0.model", "org/base"}, {"1.0", "KVCache"}, {"1.1", "RotatingKVCache"}, {"2.0", ""}}
      )
  );
  Inspection result = inspect(current);
  EXPECT_EQ(result.kind, PathKind::kPromptCache);
  EXPECT_EQ(result.cache_layers, (std::vector<std::string>{"KVCache", "RotatingKVCache"}));
  EXPECT_NE(inspection_text(result).find("1 KVCache, 1 RotatingKVCache"), std::string::npos);

  const auto older = dir_.write(
      "old.safetensors",
      safetensors_file(tensors, {{"0.0", ""}, {"1.model", "org/base"}, {"2.0", "KVCache"}})
  );
  EXPECT_EQ(inspect(older).cache_layers, std::vector<std::string>{"KVCache"});
}

TEST_F(InspectTest, ATensorFile) {
  const auto path = dir_.write(
      "x.safetensors",
      safetensors_file(
          {f32_tensor("b", {2}, {1, 2}), {"a", "F8_E5M2", {1, 1}, "x"}}, {{"k\n", "v"}}
      )
  );
  const Inspection result = inspect(path);
  EXPECT_EQ(result.kind, PathKind::kSafetensors);
  ASSERT_EQ(result.tensors.size(), 2U);
  EXPECT_EQ(result.tensors[0].name, "a");
  EXPECT_EQ(result.tensors[0].dtype, "F8_E5M2");
  EXPECT_EQ(result.metadata.at("k\n"), "v");
  const std::string text = inspection_text(result);
  EXPECT_NE(text.find("metadata 'k\\x0a' = 'v'"), std::string::npos) << text;
  EXPECT_EQ(text.find("runs"), std::string::npos);
  EXPECT_FALSE(inspection_json(result).contains("runnable"));
}

}  // namespace
}  // namespace saker::load

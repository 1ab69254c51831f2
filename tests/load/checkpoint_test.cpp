// SPDX-License-Identifier: Apache-2.0
#include "saker/load/checkpoint.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/json/json_numbers.h"
#include "saker/base/mapped_file.h"
#include "saker/load/files/safetensors.h"
#include "saker/models/model.h"

#include "tests/load/golden_tensors.h"
#include "tests/models/random_model.h"
#include "tests/support/expect_error.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

using testing::expect_error;
using testing::RawTensor;
using testing::safetensors_file;
using testing::TemporaryDir;

// A copy of a small model that a test breaks.
class CheckpointTest : public ::testing::Test {
 protected:
  explicit CheckpointTest(std::string_view golden = "llama")
      : config_(read_json_file(golden_dir(golden) / "config.json")),
        tensors_(golden_tensors(golden)) {}

  void SetUp() override {
    dir_.write("config.json", config_.dump());
    dir_.write("model.safetensors", safetensors_file(tensors_));
  }

  void write_weights() const { dir_.write("model.safetensors", safetensors_file(tensors_)); }

  void expect_failure(ErrorCode code, const std::vector<std::string_view>& words) const {
    expect_error(code, words, [this] { load_checkpoint(dir_.path()); });
  }

  // The error, whatever its code, must be one line that holds the words.
  void expect_refused(const Json& config, const std::vector<std::string_view>& words) const {
    dir_.write("config.json", config.dump());
    try {
      load_checkpoint(dir_.path());
      ADD_FAILURE() << "was loaded: " << config.dump();
    } catch (const Error& error) {
      expect_error(error.code(), words, [&] { throw Error(error); });
      EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what();
    }
  }

  TemporaryDir dir_;
  Json config_;
  std::vector<RawTensor> tensors_;
};

class QuantizedCheckpointTest : public CheckpointTest {
 protected:
  QuantizedCheckpointTest() : CheckpointTest("qwen3_q4") {}
};

TEST_F(CheckpointTest, LoadsAModel) {
  int calls = 0;
  int last = 0;
  const LoadedCheckpoint loaded = load_checkpoint(dir_.path(), [&](int done, int total) {
    ++calls;
    last = done;
    EXPECT_EQ(total, 2);
  });
  ASSERT_TRUE(loaded.model);
  EXPECT_EQ(loaded.model->info().model_type, "llama");
  EXPECT_EQ(loaded.model->info().layer_count, 2);
  EXPECT_EQ(loaded.model->info().vocab_size, 96);
  EXPECT_EQ(loaded.config["hidden_size"], 32);
  EXPECT_TRUE(loaded.warnings.empty());
  EXPECT_GE(calls, 2);
  EXPECT_EQ(last, 2);
}

mx::array logits_of(const std::filesystem::path& dir) {
  const auto loaded = load_checkpoint(dir);
  EXPECT_LE(loaded.warnings.size(), 1U);
  auto cache = loaded.model->make_cache({});
  return models::run_rows(*loaded.model, cache, {3, 1, 4, 1, 5, 9, 2, 6});
}

// As published, and as MLX's converters leave it.
TEST(NestedCheckpoints, RunUnderOtherNames) {
  for (const auto* golden : {"qwen3_5", "qwen3_5_published"}) {
    const auto expected = logits_of(golden_dir(golden));
    const Json config = read_json_file(golden_dir(golden) / "config.json");
    const TemporaryDir dir;
    dir.write("model.safetensors", safetensors_file(golden_tensors(golden)));
    for (const Json& name : {Json("qwen3.5"), Json("qwen3_5_x"), Json("mine"), Json("")}) {
      for (const Json& text : {Json("qwen3_5_text"), Json("mine_text"), Json()}) {
        SCOPED_TRACE(golden + name.dump() + text.dump());
        Json other = config;
        other["model_type"] = name;
        other["text_config"]["model_type"] = text;
        if (name == "") {
          other.erase("model_type");
        }
        if (text.is_null()) {
          other["text_config"].erase("model_type");
        }
        dir.write("config.json", other.dump());
        EXPECT_TRUE(mx::array_equal(logits_of(dir.path()), expected).item<bool>());
      }
    }
  }
}

TEST_F(CheckpointTest, GenericModelsNameTheirPartsAsTheyLike) {
  const auto expected = logits_of(dir_.path());
  config_["model_type"] = "generic";
  dir_.write("config.json", config_.dump());
  const auto original = tensors_;
  for (const std::string table : {"embedding", "token_embedding", "wte", "embed_tokens"}) {
    tensors_ = original;
    for (RawTensor& tensor : tensors_) {
      if (tensor.name.starts_with("model.")) {
        tensor.name.erase(0, 6);
      }
      if (tensor.name == "embed_tokens.weight") {
        tensor.name = table + ".weight";
      }
    }
    write_weights();
    EXPECT_TRUE(mx::array_equal(logits_of(dir_.path()), expected).item<bool>()) << table;
  }
}

TEST_F(CheckpointTest, NamesTensorsThatNothingUses) {
  tensors_.push_back(testing::f32_tensor("model.layers.0.self_attn.rotary_emb.inv_freq", {1}, {1}));
  write_weights();
  EXPECT_TRUE(load_checkpoint(dir_.path()).warnings.empty());
  for (const char* name : {"extra.1", "extra.2", "extra.3", "extra.4"}) {
    tensors_.push_back(testing::f32_tensor(name, {1}, {1}));
  }
  write_weights();
  const auto warnings = load_checkpoint(dir_.path()).warnings;
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(
      warnings[0],
      "4 of the checkpoint's tensors are not used: 'extra.1', 'extra.2', 'extra.3', ..."
  );
}

TEST_F(CheckpointTest, NamesMissingFiles) {
  std::filesystem::remove(dir_.path() / "model.safetensors");
  expect_failure(ErrorCode::kNotFound, {"no model*.safetensors"});
  std::filesystem::remove(dir_.path() / "config.json");
  expect_failure(ErrorCode::kNotFound, {"no config.json"});
  expect_error(ErrorCode::kNotFound, {"not a folder"}, [this] {
    load_checkpoint(dir_.path() / "none");
  });
}

TEST_F(CheckpointTest, NamesMissingTensors) {
  const auto all = tensors_;
  for (std::size_t i = 0; i < all.size(); ++i) {
    tensors_ = all;
    const std::string name = tensors_[i].name;
    tensors_.erase(tensors_.begin() + static_cast<std::ptrdiff_t>(i));
    write_weights();
    SCOPED_TRACE(name);
    expect_failure(ErrorCode::kCorruptData, {name});
  }
}

TEST_F(CheckpointTest, NamesWrongShapes) {
  const auto all = tensors_;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& name = all[i].name;
    // Of the layer, with or without its last part.
    const std::string module = name.substr(0, name.rfind('.'));
    SCOPED_TRACE(name);
    for (const bool more_rows : {false, true}) {
      tensors_ = all;
      RawTensor& broken = tensors_[i];
      broken.shape[0] += more_rows ? 1 : -1;
      std::int64_t bytes = 4;
      for (const std::int64_t size : broken.shape) {
        bytes *= size;
      }
      broken.bytes.resize(static_cast<std::size_t>(bytes));
      write_weights();
      expect_failure(ErrorCode::kCorruptData, {module});
    }
    tensors_ = all;
    tensors_[i].shape.push_back(1);
    write_weights();
    expect_failure(ErrorCode::kCorruptData, {module});
    tensors_[i].shape.clear();
    tensors_[i].bytes.resize(4);
    write_weights();
    expect_failure(ErrorCode::kCorruptData, {module});
    tensors_[i].shape = {0};
    tensors_[i].bytes.clear();
    write_weights();
    expect_failure(ErrorCode::kCorruptData, {module});
  }
}

TEST_F(CheckpointTest, NamesDtypesThatAreNoWeights) {
  const auto all = tensors_;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (const std::string dtype : {"I32", "U32"}) {
      tensors_ = all;
      tensors_[i].dtype = dtype;
      write_weights();
      const std::string module = all[i].name.substr(0, all[i].name.rfind('.'));
      SCOPED_TRACE(all[i].name);
      expect_refused(config_, {module, dtype});
    }
  }
}

TEST_F(QuantizedCheckpointTest, NamesPartsThatDisagree) {
  ASSERT_NO_THROW(load_checkpoint(dir_.path()));
  const auto all = tensors_;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& name = all[i].name;
    const std::string module = name.substr(0, name.rfind('.'));
    SCOPED_TRACE(name);
    for (std::size_t axis = 0; axis < all[i].shape.size(); ++axis) {
      tensors_ = all;
      RawTensor& broken = tensors_[i];
      // No format has 12 bits or groups of a third; twice the words could be another format's.
      broken.bytes.resize(broken.bytes.size() * 3);
      broken.shape[axis] *= 3;
      write_weights();
      expect_refused(config_, {module});
    }
    if (name.ends_with(".biases")) {
      tensors_ = all;
      tensors_.erase(tensors_.begin() + static_cast<std::ptrdiff_t>(i));
      write_weights();
      expect_refused(config_, {module});
    }
  }
}

TEST_F(QuantizedCheckpointTest, NamesModulesWhoseSettingsAreWrong) {
  for (const Json& setting :
       {Json{{"bits", 8}}, Json{{"group_size", 128}}, Json{{"mode", "mxfp4"}}, Json(false)}) {
    for (const std::string module :
         {"model.layers.1.self_attn.o_proj", "model.layers.0.mlp.down_proj", "model.embed_tokens"
         }) {
      Json config = config_;
      config["quantization"][module] = setting;
      SCOPED_TRACE(config["quantization"].dump());
      expect_refused(config, {module});
    }
  }
}

TEST_F(CheckpointTest, NamesFieldsThatAreMissing) {
  for (const std::string key : {"hidden_size", "intermediate_size", "num_hidden_layers"}) {
    Json config = config_;
    config.erase(key);
    SCOPED_TRACE(key);
    expect_refused(config, {key});
  }
}

// Its tensors tell that it is a llama; the configuration stays as it is.
TEST_F(CheckpointTest, AModelWithoutATypeRunsByItsTensors) {
  Json config = config_;
  config.erase("model_type");
  dir_.write("config.json", config.dump());
  const LoadedCheckpoint loaded = load_checkpoint(dir_.path());
  EXPECT_EQ(loaded.model->info().model_type, "generic");
  EXPECT_EQ(loaded.config, config);
  ASSERT_EQ(loaded.warnings.size(), 1U);
  EXPECT_NE(loaded.warnings[0].find("runs as generic"), std::string::npos);
  tensors_.push_back(testing::f32_tensor("model.layers.0.self_attn.q_norm.weight", {1}, {1}));
  write_weights();
  expect_failure(ErrorCode::kUnsupported, {"model_type", "missing", "q_norm"});
}

TEST_F(CheckpointTest, NamesFieldsThatCannotBe) {
  const std::vector<Json> wrong = {
      -1, 0, 1e300, 1.5, "7", true, Json::array(), Json::object(), INT64_MAX, INT64_MIN, UINT64_MAX
  };
  for (const std::string key :
       {"hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "vocab_size",
        "max_position_embeddings"}) {
    for (const Json& value : wrong) {
      Json config = config_;
      config[key] = value;
      SCOPED_TRACE(config.dump());
      expect_refused(config, {key});
    }
  }
  for (const std::string key : {"rms_norm_eps", "rope_theta"}) {
    for (const Json& value : {Json(-1), Json("7"), Json(true), Json::array()}) {
      Json config = config_;
      config[key] = value;
      SCOPED_TRACE(config.dump());
      expect_refused(config, {key});
    }
  }
}

TEST_F(CheckpointTest, NamesSizesThatTheWeightsContradict) {
  for (const std::string key :
       {"hidden_size",
        "intermediate_size",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "num_hidden_layers"}) {
    for (const int factor : {2, 1000}) {
      Json config = config_;
      config[key] = config[key].get<int>() * factor;
      SCOPED_TRACE(config.dump());
      expect_refused(config, {});
    }
  }
}

TEST_F(CheckpointTest, RefusesNaNAndOtherText) {
  for (const std::string_view text : {"", "{", "\xff"}) {
    dir_.write("config.json", text);
    expect_failure(ErrorCode::kCorruptData, {"config.json", "byte"});
  }
  for (const std::string_view text : {"[]", "null", "7", "\"llama\""}) {
    dir_.write("config.json", text);
    SCOPED_TRACE(text);
    expect_failure(ErrorCode::kCorruptData, {});
  }
  Json config = config_;
  config["rms_norm_eps"] = std::numeric_limits<double>::infinity();
  dir_.write("config.json", write_json(config));
  expect_failure(ErrorCode::kCorruptData, {"rms_norm_eps", "Infinity"});
}

TEST_F(CheckpointTest, NamesWhatItCannotRun) {
  Json config = config_;
  config["model_type"] = "gemma3n";
  expect_refused(config, {"model_type", "gemma3n"});
  config["model_type"] = 7;
  expect_refused(config, {"model_type", "7"});
  config = config_;
  config["rope_scaling"] = {{"rope_type", "spiral"}};
  expect_refused(config, {"rope", "spiral"});
}

// As training on quantized weights and merging leaves them.
TEST_F(CheckpointTest, PlainWeightsRunUnderASectionThatWasLeft) {
  for (const std::string method :
       {"bitsandbytes", "fp8", "gptq", "compressed-tensors", "hqq", "anything"}) {
    const Json section = {{"quant_method", method}, {"format", "dense"}, {"bits", 3}};
    for (Json config :
         {Json{{"quantization_config", section}},
          Json{{"text_config", {{"quantization_config", section}}}}}) {
      SCOPED_TRACE(config.dump());
      config.update(config_);
      if (config.contains("text_config")) {
        config["text_config"].update(config_);
      }
      dir_.write("config.json", config.dump());
      const auto loaded = load_checkpoint(dir_.path());
      ASSERT_EQ(loaded.warnings.size(), 1U);
      EXPECT_NE(loaded.warnings[0].find("'" + method + "'"), std::string::npos);
    }
  }
}

TEST_F(CheckpointTest, CodesOfAToolThatWeDoNotReadAreRefused) {
  const auto all = tensors_;
  for (const std::string dtype : {"U8", "I8", "F8_E5M2"}) {
    tensors_ = all;
    const auto found = std::ranges::find_if(tensors_, [](const RawTensor& tensor) {
      return tensor.name.ends_with("up_proj.weight");
    });
    found->dtype = dtype;
    found->bytes.resize(found->bytes.size() / 4);
    write_weights();
    Json config = config_;
    for (const std::string method : {"bitsandbytes", "hqq"}) {
      config["quantization_config"] = {{"quant_method", method}};
      expect_refused(config, {"quantization_config.quant_method", method});
    }
  }
}

TEST_F(CheckpointTest, TensorsOfStrangeDtypesStopWhoNeedsThem) {
  tensors_.push_back({"freqs", "C64", {2}, std::string(16, 'c')});
  tensors_.push_back({"more", "NEW_F3", {2, 2}, "xyz"});
  write_weights();
  const auto warnings = load_checkpoint(dir_.path()).warnings;
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("'freqs' (C64), 'more' (of a later format)"), std::string::npos);
  tensors_[0].dtype = "F4";
  tensors_[0].bytes.resize(tensors_[0].bytes.size() / 8);
  write_weights();
  expect_failure(ErrorCode::kUnsupported, {tensors_[0].name, "F4"});
}

TEST_F(CheckpointTest, AMissingTensorThatTheIndexPromisesIsNamedWithItsFile) {
  Json map = Json::object();
  for (const RawTensor& tensor : tensors_) {
    map[tensor.name] = "model.safetensors";
  }
  map["value_head.weight"] = "head.safetensors";
  map["model.layers.0.self_attn.masked_bias"] = "model.safetensors";
  const auto write_index = [&] {
    dir_.write("model.safetensors.index.json", Json{{"weight_map", map}}.dump());
  };
  write_index();
  EXPECT_EQ(load_checkpoint(dir_.path()).warnings.size(), 2U);
  // A tensor that layers take where there is one.
  map["model.layers.0.self_attn.q_proj.bias"] = "model-2.safetensors";
  write_index();
  expect_failure(ErrorCode::kNotFound, {"layers.0.self_attn.q_proj.bias", "model-2.safetensors"});
}

class MtpCheckpointTest : public CheckpointTest {
 protected:
  MtpCheckpointTest() : CheckpointTest("mtp/qwen3") {}
};

TEST_F(MtpCheckpointTest, AHeadThatLacksAPartIsLeftOut) {
  ASSERT_NE(load_checkpoint(dir_.path(), {}, true).mtp, nullptr);
  std::erase_if(tensors_, [](const RawTensor& tensor) {
    return tensor.name.find("mtp.") != std::string::npos &&
           tensor.name.find(".mlp.") != std::string::npos;
  });
  write_weights();
  const auto loaded = load_checkpoint(dir_.path(), {}, true);
  EXPECT_NE(loaded.model, nullptr);
  EXPECT_EQ(loaded.mtp, nullptr);
  ASSERT_EQ(loaded.warnings.size(), 1U);
  EXPECT_NE(loaded.warnings[0].find("MTP head is not used"), std::string::npos);
  EXPECT_TRUE(load_checkpoint(dir_.path()).warnings.empty());
}

TEST_F(CheckpointTest, RefusesAFileCutAnywhereInTheHeader) {
  const std::string whole = safetensors_file(tensors_);
  for (std::size_t size = 0; size < whole.size(); size += size < 64 ? 1 : 997) {
    dir_.write("model.safetensors", std::string_view(whole).substr(0, size));
    SCOPED_TRACE(size);
    expect_failure(ErrorCode::kCorruptData, {"model.safetensors"});
  }
}

}  // namespace
}  // namespace saker::load

// SPDX-License-Identifier: Apache-2.0
#include "saker/load/checkpoint.h"

#include "saker/base/error.h"
#include "saker/base/json.h"
#include "saker/base/json/json_numbers.h"
#include "saker/base/mapped_file.h"
#include "saker/load/safetensors.h"
#include "saker/models/model.h"

#include "tests/support/expect_error.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_dir.h"
#include <gtest/gtest.h>

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

std::filesystem::path golden_dir(std::string_view name) {
  return std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden" / name;
}

std::vector<RawTensor> golden_tensors(std::string_view golden) {
  std::vector<RawTensor> tensors;
  for (const auto& [name, tensor] : read_safetensors(golden_dir(golden) / "model.safetensors")) {
    const auto bytes = tensor.bytes();
    tensors.push_back(
        {name,
         std::string(dtype_name(tensor.dtype)),
         tensor.shape,
         {reinterpret_cast<const char*>(bytes.data()), bytes.size()}}
    );
  }
  return tensors;
}

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
  config["model_type"] = "llama4";
  expect_refused(config, {"model_type", "llama4"});
  config["model_type"] = 7;
  expect_refused(config, {"model_type", "7"});
  config = config_;
  config["quantization_config"] = {{"quant_method", "bitnet"}};
  expect_refused(config, {"quantization_config.quant_method", "'bitnet'"});
  config["quantization_config"] = {{"quant_method", "gptq"}};
  dir_.write("config.json", config.dump());
  expect_failure(ErrorCode::kCorruptData, {"'gptq'", "no tensor of the checkpoint"});
  config = config_;
  config["rope_scaling"] = {{"rope_type", "spiral"}};
  expect_refused(config, {"rope", "spiral"});
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

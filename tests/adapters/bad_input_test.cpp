// SPDX-License-Identifier: Apache-2.0
// Adapters that are broken, belong to another base or ask for what we can't run: one clear line
// each.
#include "saker/adapters/bind.h"
#include "saker/adapters/peft_config.h"
#include "saker/load/checkpoint.h"

#include "tests/support/expect_error.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_dir.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

namespace saker::adapters {
namespace {

using saker::testing::expect_error;
using saker::testing::f32_tensor;
using saker::testing::RawTensor;
using saker::testing::TemporaryDir;

constexpr std::string_view kQuery = "base_model.model.model.layers.0.self_attn.q_proj";
constexpr int kRank = 2;
constexpr int kHidden = 32;  // Of tests/golden/llama.

RawTensor tensor(std::string name, std::vector<std::int64_t> shape, float value = 0.5F) {
  std::size_t count = 1;
  for (const auto extent : shape) {
    count *= static_cast<std::size_t>(extent);
  }
  return f32_tensor(std::move(name), std::move(shape), std::vector<float>(count, value));
}

Json peft_config() {
  return {{"peft_type", "LORA"}, {"r", kRank}, {"lora_alpha", 4}};
}

Json mlx_config() {
  return {
      {"fine_tune_type", "lora"},
      {"num_layers", 1},
      {"lora_parameters", {{"rank", kRank}, {"scale", 2.0}}},
  };
}

std::vector<RawTensor> peft_tensors() {
  const std::string query(kQuery);
  return {
      tensor(query + ".lora_A.weight", {kRank, kHidden}),
      tensor(query + ".lora_B.weight", {kHidden, kRank}),
  };
}

std::vector<RawTensor> mlx_tensors() {
  return {
      tensor("model.layers.0.self_attn.q_proj.lora_a", {kHidden, kRank}),
      tensor("model.layers.0.self_attn.q_proj.lora_b", {kRank, kHidden}),
  };
}

class BadAdapter : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    checkpoint =
        load::load_checkpoint(std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/llama");
  }

  static void TearDownTestSuite() { checkpoint = {}; }

  static void load(const TemporaryDir& dir) { load_adapter(dir.path(), *checkpoint.model); }

  static void load_peft(const Json& config, const std::vector<RawTensor>& tensors) {
    const TemporaryDir dir;
    dir.write("adapter_config.json", config.dump());
    dir.write("adapter_model.safetensors", testing::safetensors_file(tensors));
    load(dir);
  }

  static void load_mlx(const Json& config, const std::vector<RawTensor>& tensors) {
    const TemporaryDir dir;
    dir.write("adapter_config.json", config.dump());
    dir.write("adapters.safetensors", testing::safetensors_file(tensors));
    load(dir);
  }

  static void refuse_peft(
      ErrorCode code,
      const std::vector<std::string_view>& words,
      const Json& config,
      const std::vector<RawTensor>& tensors = peft_tensors()
  ) {
    expect_error(code, words, [&] { load_peft(config, tensors); });
  }

  static load::LoadedCheckpoint checkpoint;
};

load::LoadedCheckpoint BadAdapter::checkpoint;

TEST_F(BadAdapter, TheGoodOnesLoad) {
  load_peft(peft_config(), peft_tensors());
  load_mlx(mlx_config(), mlx_tensors());
}

TEST_F(BadAdapter, ReplacedWeightsMayBeFloat64) {
  auto tensors = peft_tensors();
  const std::vector<double> ones(kHidden, 1.0);
  tensors.push_back(
      {"base_model.model.model.norm.weight", "F64", {kHidden}, testing::raw_bytes(ones)}
  );
  load_peft(peft_config(), tensors);
}

TEST_F(BadAdapter, FoldersWithoutAnAdapter) {
  const TemporaryDir dir;
  expect_error(ErrorCode::kNotFound, {"adapters.safetensors", "adapter_model"}, [&] { load(dir); });
  for (const auto& name : {std::string("nothing"), std::string(5000, 'a')}) {
    expect_error(ErrorCode::kNotFound, {"no folder"}, [&] {
      load_adapter(dir.path() / name, *checkpoint.model);
    });
  }
  dir.write("adapter_model.bin", "x");
  expect_error(ErrorCode::kUnsupported, {"adapter_model.bin"}, [&] { load(dir); });
  dir.write("adapters.npz", "x");
  expect_error(ErrorCode::kNotFound, {"no adapter_config.json"}, [&] { load(dir); });
  dir.write("adapters.safetensors", testing::safetensors_file(mlx_tensors()));
  expect_error(ErrorCode::kNotFound, {"no adapter_config.json"}, [&] { load(dir); });
  dir.write("adapter_config.json", "[1]");
  expect_error(ErrorCode::kCorruptData, {"expected an object"}, [&] { load(dir); });
  dir.write("adapter_config.json", "{");
  expect_error(ErrorCode::kCorruptData, {"adapter_config.json"}, [&] { load(dir); });
}

TEST_F(BadAdapter, BrokenWeights) {
  const TemporaryDir dir;
  dir.write("adapter_config.json", mlx_config().dump());
  auto file = testing::safetensors_file(mlx_tensors());
  file.resize(file.size() - 4);
  dir.write("adapters.safetensors", file);
  expect_error(ErrorCode::kCorruptData, {"adapters.safetensors"}, [&] { load(dir); });
  expect_error(ErrorCode::kCorruptData, {"no tensor"}, [&] { load_mlx(mlx_config(), {}); });

  auto tensors = mlx_tensors();
  tensors[1] = tensor(tensors[1].name, {kRank, kHidden}, std::numeric_limits<float>::quiet_NaN());
  expect_error(ErrorCode::kCorruptData, {"lora_b", "nan", "finite"}, [&] {
    load_mlx(mlx_config(), tensors);
  });
  tensors = mlx_tensors();
  tensors[0] = {tensors[0].name, "I32", tensors[0].shape, tensors[0].bytes};
  expect_error(ErrorCode::kCorruptData, {"lora_a", "I32"}, [&] {
    load_mlx(mlx_config(), tensors);
  });
  tensors = mlx_tensors();
  tensors.pop_back();
  expect_error(ErrorCode::kCorruptData, {"q_proj", "only one"}, [&] {
    load_mlx(mlx_config(), tensors);
  });
  tensors = mlx_tensors();
  tensors[1] = tensor(tensors[1].name, {kRank + 1, kHidden});
  expect_error(ErrorCode::kCorruptData, {"q_proj", "ranks 2 and 3"}, [&] {
    load_mlx(mlx_config(), tensors);
  });
  tensors = mlx_tensors();
  tensors[0] = tensor(tensors[0].name, {kHidden, 0});
  expect_error(ErrorCode::kCorruptData, {"lora_a", "[32, 0]"}, [&] {
    load_mlx(mlx_config(), tensors);
  });
}

TEST_F(BadAdapter, OfAnotherBase) {
  auto tensors = peft_tensors();
  tensors[0] = tensor(tensors[0].name, {kRank, kHidden + 4});
  refuse_peft(
      ErrorCode::kInvalidArgument, {"q_proj", "[2, 36]", "[2, 32]"}, peft_config(), tensors
  );
  tensors = peft_tensors();
  tensors[1] = tensor(tensors[1].name, {kHidden + 4, kRank});
  refuse_peft(
      ErrorCode::kInvalidArgument, {"q_proj", "[36, 2]", "[32, 2]"}, peft_config(), tensors
  );
  // More layers than the model has, and parts that it lacks: named, never skipped.
  const std::string far = "base_model.model.model.layers.7.mlp.up_proj";
  tensors = peft_tensors();
  tensors.push_back(tensor(far + ".lora_A.weight", {kRank, kHidden}));
  tensors.push_back(tensor(far + ".lora_B.weight", {kHidden, kRank}));
  refuse_peft(
      ErrorCode::kInvalidArgument, {"layers.7.mlp.up_proj", "1 module "}, peft_config(), tensors
  );
  const std::string tower = "base_model.model.vision_tower.layers.0.self_attn.q_proj";
  tensors = {
      tensor(tower + ".lora_A.weight", {kRank, kHidden}),
      tensor(tower + ".lora_B.weight", {kHidden, kRank}),
  };
  refuse_peft(ErrorCode::kUnsupported, {"vision_tower", "images"}, peft_config(), tensors);
}

// Of several adapters it says which one, and says it once.
TEST_F(BadAdapter, ErrorsNameTheFolder) {
  const auto refuse =
      [](ErrorCode code, std::string_view word, const Json& config, const auto& tensors) {
        const TemporaryDir dir;
        dir.write("adapter_config.json", config.dump());
        dir.write("adapter_model.safetensors", testing::safetensors_file(tensors));
        const std::string folder = dir.path().string();
        try {
          load(dir);
          ADD_FAILURE() << "nothing was thrown, expected " << word;
        } catch (const Error& error) {
          const std::string text = error.what();
          EXPECT_EQ(error_code_name(error.code()), error_code_name(code)) << text;
          EXPECT_NE(text.find(word), std::string::npos) << text;
          EXPECT_EQ(text.find(folder), text.rfind(folder)) << text;
          EXPECT_NE(text.find(folder), std::string::npos) << text;
        }
      };
  Json config = peft_config();
  config["peft_type"] = "LOHA";
  refuse(ErrorCode::kUnsupported, "LOHA", config, peft_tensors());
  refuse(ErrorCode::kCorruptData, "expected an object", Json::array(), peft_tensors());
  auto tensors = peft_tensors();
  tensors[0] = tensor(tensors[0].name, {kRank, kHidden + 4});
  refuse(ErrorCode::kInvalidArgument, "[2, 36]", peft_config(), tensors);
}

TEST_F(BadAdapter, ReplacedWeightsMustFit) {
  auto tensors = peft_tensors();
  tensors.push_back(tensor("base_model.model.lm_head.weight", {97, kHidden}));
  refuse_peft(
      ErrorCode::kInvalidArgument,
      {"lm_head", "97 tokens and the base 96", "--fuse"},
      peft_config(),
      tensors
  );
  tensors.back() = tensor("base_model.model.lm_head.weight", {96, kHidden + 1});
  refuse_peft(ErrorCode::kInvalidArgument, {"lm_head", "[96, 33]"}, peft_config(), tensors);
  tensors = peft_tensors();
  const std::string norm = "base_model.model.model.norm.";
  tensors.push_back(tensor(norm + "weight", {kHidden + 1}));
  refuse_peft(ErrorCode::kInvalidArgument, {"model.norm", "33"}, peft_config(), tensors);
  tensors.back() = tensor(norm + "weight", {kHidden, 1});
  refuse_peft(ErrorCode::kCorruptData, {"model.norm", "[32, 1]"}, peft_config(), tensors);
  tensors.back() = tensor(norm + "weight", {});
  refuse_peft(ErrorCode::kCorruptData, {"model.norm", "[]"}, peft_config(), tensors);
  tensors.back() = tensor(norm + "bias", {kHidden});
  refuse_peft(ErrorCode::kUnsupported, {"model.norm"}, peft_config(), tensors);
  tensors = peft_tensors();
  tensors.push_back(tensor(std::string(kQuery) + ".lora_C.weight", {kRank, kHidden}));
  refuse_peft(ErrorCode::kInvalidArgument, {"lora_C"}, peft_config(), tensors);
}

TEST_F(BadAdapter, PeftConfigurationsThatWeDoNotRun) {
  const auto with = [](std::string_view key, const Json& value) {
    Json config = peft_config();
    config[std::string(key)] = value;
    return config;
  };
  refuse_peft(ErrorCode::kUnsupported, {"peft_type", "LOHA"}, with("peft_type", "LOHA"));
  refuse_peft(ErrorCode::kUnsupported, {"peft_type"}, {{"r", 2}});
  refuse_peft(
      ErrorCode::kUnsupported, {"alora_invocation_tokens"}, with("alora_invocation_tokens", {1, 2})
  );
  refuse_peft(
      ErrorCode::kUnsupported, {"target_parameters"}, with("target_parameters", {"experts.w"})
  );
  refuse_peft(
      ErrorCode::kUnsupported, {"trainable_token_indices"}, with("trainable_token_indices", {5})
  );
  for (const auto* init :
       {"pissa", "pissa_niter_16", "olora", "corda", "loftq", "PiSSA", "lora_ga"}) {
    refuse_peft(
        ErrorCode::kUnsupported, {"init_lora_weights", init}, with("init_lora_weights", init)
    );
  }
  load_peft(with("init_lora_weights", "gaussian"), peft_tensors());
  load_peft(with("init_lora_weights", true), peft_tensors());
  refuse_peft(ErrorCode::kCorruptData, {"r is 0"}, with("r", 0));
  refuse_peft(ErrorCode::kCorruptData, {"r is -3"}, with("r", -3));
  refuse_peft(ErrorCode::kCorruptData, {"q_proj", "rank 2", "8"}, with("r", 8));
  refuse_peft(ErrorCode::kCorruptData, {"rank_pattern"}, with("rank_pattern", {{"q_proj", 0}}));
  refuse_peft(
      ErrorCode::kUnsupported,
      {"alpha_pattern", "(?!q)", "look"},
      with("alpha_pattern", {{"(?!q).*", 3}})
  );
  refuse_peft(ErrorCode::kUnsupported, {"rank_pattern", "(q"}, with("rank_pattern", {{"(q", 3}}));
  Json many = Json::object();
  for (int i = 0; i < 2000; ++i) {
    many[fmt::format("q{}.*", i)] = kRank;
  }
  refuse_peft(
      ErrorCode::kUnsupported, {"rank_pattern", "1024 regular"}, with("rank_pattern", many)
  );
  load_peft(with("target_modules", R"(.*\.layers\.\d+\.self_attn\.(q|k)_proj)"), peft_tensors());
  refuse_peft(ErrorCode::kCorruptData, {"magnitudes", "use_dora"}, with("use_dora", true));
  refuse_peft(ErrorCode::kCorruptData, {"lora_alpha"}, with("lora_alpha", "much"));
  // PEFT divides by the rank, which null stops.
  for (const auto* key : {"r", "lora_alpha"}) {
    refuse_peft(ErrorCode::kCorruptData, {key, "null", "finite number"}, with(key, nullptr));
  }
  for (const auto* key : {"rank_pattern", "alpha_pattern"}) {
    refuse_peft(ErrorCode::kCorruptData, {key, "q_proj", "null"}, with(key, {{"q_proj", nullptr}}));
  }
}

TEST_F(BadAdapter, MlxConfigurationsThatWeDoNotRun) {
  Json config = mlx_config();
  config["fine_tune_type"] = "prefix";
  expect_error(ErrorCode::kUnsupported, {"fine_tune_type", "prefix"}, [&] {
    load_mlx(config, mlx_tensors());
  });
  config = mlx_config();
  config["lora_parameters"] = {{"rank", 2}, {"alpha", 16}};
  expect_error(ErrorCode::kCorruptData, {"scale", "alpha / rank"}, [&] {
    load_mlx(config, mlx_tensors());
  });
  config.erase("lora_parameters");
  expect_error(ErrorCode::kCorruptData, {"lora_parameters"}, [&] {
    load_mlx(config, mlx_tensors());
  });
  config = mlx_config();
  config["lora_parameters"]["rank"] = 0;
  expect_error(ErrorCode::kCorruptData, {"rank is 0"}, [&] { load_mlx(config, mlx_tensors()); });
  expect_error(ErrorCode::kCorruptData, {"peft_type"}, [&] {
    load_mlx(peft_config(), mlx_tensors());
  });
}

TEST_F(BadAdapter, ExpertsAreNamed) {
  const std::string experts = "model.layers.0.mlp.switch_mlp.up_proj.";
  auto tensors = mlx_tensors();
  tensors.push_back(tensor(experts + "lora_a", {4, kRank, kHidden}));
  tensors.push_back(tensor(experts + "lora_b", {4, kHidden, kRank}));
  expect_error(ErrorCode::kInvalidArgument, {"experts.0.up_proj"}, [&] {
    load_mlx(mlx_config(), tensors);
  });
  const std::string one = "base_model.model.model.layers.0.mlp.experts.3.up_proj";
  tensors = peft_tensors();
  tensors.push_back(tensor(one + ".lora_A.weight", {kRank, kHidden}));
  tensors.push_back(tensor(one + ".lora_B.weight", {kHidden, kRank}));
  refuse_peft(ErrorCode::kInvalidArgument, {"experts.3.up_proj"}, peft_config(), tensors);
}

// A key is a whole name or the end of one after a dot; the first that fits decides.
TEST(PeftConfig, PatternsMatchEndsOfNames) {
  Json config = peft_config();
  config["lora_alpha"] = 8;
  config["rank_pattern"] = {{"q_proj", 4}, {"layers.1.self_attn.k_proj", 16}};
  config["alpha_pattern"] = {{"v_proj", 32}, {"proj", 1}};
  const PeftConfig parsed = read_peft_config(config);
  EXPECT_EQ(parsed.rank("model.layers.0.self_attn.q_proj"), 4);
  EXPECT_EQ(parsed.rank("model.layers.1.self_attn.k_proj"), 16);
  EXPECT_EQ(parsed.rank("model.layers.11.self_attn.k_proj"), 2);
  EXPECT_EQ(parsed.scale("model.layers.0.self_attn.q_proj"), 2.0F);
  EXPECT_EQ(parsed.scale("model.layers.0.self_attn.v_proj"), 16.0F);
  EXPECT_EQ(parsed.scale("q_proj"), 2.0F);
  config["use_rslora"] = true;
  EXPECT_EQ(read_peft_config(config).scale("model.layers.0.self_attn.q_proj"), 4.0F);
}

// What PEFT's get_pattern_key gives for these keys and names.
TEST(PeftConfig, PatternsMayBeRegularExpressions) {
  Json config = peft_config();
  config["rank_pattern"] = {
      {R"(layers\.[0-3]\..*)", 4}, {"(q|k)_proj", 8}, {"^model.norm_head$", 16}, {"o_proj", 32}
  };
  const PeftConfig parsed = read_peft_config(config);
  EXPECT_EQ(parsed.rank("model.layers.3.self_attn.o_proj"), 4);
  EXPECT_EQ(parsed.rank("model.layers.4.self_attn.q_proj"), 8);
  EXPECT_EQ(parsed.rank("model.layers.4.self_attn.xq_proj"), 2);
  EXPECT_EQ(parsed.rank("model.norm_head"), 16);
  EXPECT_EQ(parsed.rank("x.model.norm_head"), 2);
  EXPECT_EQ(parsed.rank("model.layers.4.self_attn.o_proj"), 32);
}

}  // namespace
}  // namespace saker::adapters

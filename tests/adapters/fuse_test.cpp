// SPDX-License-Identifier: Apache-2.0
// Fused models against the same adapter at run time.
#include "saker/adapters/fuse.h"

#include "saker/adapters/bind.h"
#include "saker/adapters/resized.h"
#include "saker/base/json/json.h"
#include "saker/load/checkpoint.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/files/safetensors_writer.h"

#include "tests/adapters/logits.h"
#include "tests/support/expect_error.h"
#include "tests/support/temporary_dir.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <ostream>

namespace saker::adapters {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;
using testing::Logits;
using testing::mean_difference;
using testing::run_alone;
using testing::same_bits;
using testing::TemporaryDir;

struct Case {
  std::string_view adapter;
  std::string_view base;
  double tolerance;

  friend std::ostream& operator<<(std::ostream& out, const Case& self) {
    return out << self.adapter;
  }
};

constexpr double kExact = 2e-5;
constexpr double kQ8 = 5e-2;  // Weights are rounded again.
constexpr double kQ4 = 1.5;

constexpr Case kCases[] = {
    {"mlx_lora", "qwen3", kExact},
    {"mlx_lora_last", "llama", kExact},
    {"mlx_lora_embedding", "qwen3", kExact},
    {"mlx_lora_head", "llama", kExact},
    {"mlx_lora_q4", "qwen3_q4", kQ4},
    {"mlx_lora_moe", "qwen3_moe", kExact},
    {"mlx_lora_experts", "qwen3_moe", kExact},
    {"mlx_lora_experts_q4", "qwen3_moe_q4", kQ4},
    {"mlx_lora_experts_single", "qwen3_moe_single", kExact},
    {"mlx_dora", "llama_bias", kExact},
    {"mlx_dora_q8", "qwen3_q8", kQ8},
    {"peft_gemma2", "gemma2", kExact},
    {"peft_qwen2", "qwen2", kExact},
    {"peft_patterns", "qwen3", kExact},
    {"peft_embedding", "qwen3", kExact},
    {"peft_head", "qwen3", kExact},
    {"peft_saved", "llama", kExact},
    {"peft_saved_layer", "llama_bias", kExact},
    {"peft_lora_bias", "llama_bias", kExact},
    {"peft_bias_all", "llama_bias", kExact},
    {"peft_bias_own", "qwen2", kExact},
    {"peft_dora", "llama_bias", kExact},
    {"peft_nested", "gemma3_nested", kExact},
    {"mlx_dora_embedding", "qwen3", kExact},
    {"peft_dora_embedding", "qwen3", kExact},
    {"peft_norms", "qwen3", kExact},
    {"peft_gemma_norms", "gemma3", kExact},
    {"peft_final_norm", "llama", kExact},
};

std::filesystem::path golden_dir() {
  return std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden";
}

std::filesystem::path adapter_dir(std::string_view name) {
  return golden_dir() / "adapters" / name;
}

// Only those that replace embedding or head by ones of other sizes.
TEST(Fuse, KnowsAVocabularyFromTheFiles) {
  for (const Case& test : kCases) {
    EXPECT_FALSE(has_own_vocabulary(golden_dir() / test.base, adapter_dir(test.adapter)))
        << test.adapter;
  }
  EXPECT_FALSE(
      has_own_vocabulary(golden_dir() / "gemma4_small", adapter_dir("mlx_lora_layer_inputs"))
  );
  EXPECT_FALSE(has_own_vocabulary(golden_dir() / "llama", golden_dir() / "nothing"));
  EXPECT_FALSE(has_own_vocabulary(golden_dir() / "nothing", adapter_dir("peft_resized")));
  EXPECT_FALSE(has_own_vocabulary(golden_dir() / "llama", golden_dir() / "llama"));
}

class Fused : public ::testing::TestWithParam<Case> {};

TEST_P(Fused, LogitsAreTheAdapters) {
  const std::vector<int> ids = {3, 14, 15, 92, 65, 35, 89, 79};
  const auto base = load::load_checkpoint(golden_dir() / GetParam().base);
  const auto adapter = load_adapter(adapter_dir(GetParam().adapter), *base.model);
  const auto vocab = static_cast<std::size_t>(base.model->info().vocab_size);
  const auto plain = run_alone(*base.model, {}, ids);
  for (const float strength : {1.0F, -0.5F}) {
    const TemporaryDir dir;
    const auto out = dir.path() / "fused";
    fuse(golden_dir() / GetParam().base, adapter_dir(GetParam().adapter), out, {strength, {}});
    const auto fused = load::load_checkpoint(out);
    EXPECT_THAT(fused.warnings, ElementsAre());
    const auto expected = run_alone(*base.model, {adapter, strength}, ids);
    const auto got = run_alone(*fused.model, {}, ids);
    if (strength == 1.0F) {
      const auto in_memory =
          load_fused(golden_dir() / GetParam().base, adapter_dir(GetParam().adapter));
      EXPECT_TRUE(same_bits(run_alone(*in_memory.loaded.model, {}, ids), got));
    }
    const double difference = mean_difference(got, expected, vocab);
    EXPECT_LT(difference, GetParam().tolerance) << strength;
    EXPECT_GT(mean_difference(plain, expected, vocab), 2 * difference) << strength;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Fused, ::testing::ValuesIn(kCases), [](const auto& test) {
  return std::string(test.param.adapter);
});

TEST(Fuse, UntiesAHeadThatDiffersFromItsEmbedding) {
  const TemporaryDir dir;
  const auto report =
      fuse(golden_dir() / "qwen3", adapter_dir("peft_head"), dir.path() / "fused", {});
  EXPECT_THAT(report.added, ElementsAre("lm_head.weight"));
  EXPECT_EQ(read_json_file(dir.path() / "fused/config.json")["tie_word_embeddings"], false);
  const auto tied =
      fuse(golden_dir() / "qwen3", adapter_dir("mlx_lora_embedding"), dir.path() / "tied", {});
  EXPECT_THAT(tied.added, ElementsAre());
  EXPECT_EQ(read_json_file(dir.path() / "tied/config.json")["tie_word_embeddings"], true);
}

// Tokens that were added to the base, or taken away, before training.
TEST(Fuse, TakesAVocabularyOfAnotherSize) {
  struct Resized {
    std::string_view adapter;
    std::string_view base;
    int tokens;
    bool tied;
  };

  for (const Resized& test : {
           Resized{"peft_resized", "llama", 101, false},
           Resized{"peft_resized_embedding", "qwen3", 101, false},
           Resized{"peft_resized_tied", "qwen3", 91, true},
       }) {
    SCOPED_TRACE(test.adapter);
    const TemporaryDir dir;
    fuse(golden_dir() / test.base, adapter_dir(test.adapter), dir.path() / "fused", {});
    const auto fused = load::load_checkpoint(dir.path() / "fused");
    EXPECT_THAT(fused.warnings, ElementsAre());
    EXPECT_EQ(fused.model->info().vocab_size, test.tokens);
    const Json config = read_json_file(dir.path() / "fused/config.json");
    EXPECT_EQ(config.value("tie_word_embeddings", false), test.tied);
    auto golden =
        mx::load_safetensors((adapter_dir(test.adapter) / "golden.safetensors").string()).first;
    auto ids = golden.at("ids");
    auto logits = mx::contiguous(golden.at("logits"));
    mx::eval(ids, logits);
    const std::vector<int> tokens(ids.data<int>(), ids.data<int>() + ids.size());
    const Logits expected(logits.data<float>(), logits.data<float>() + logits.size());
    const auto got = run_alone(*fused.model, {}, tokens);
    EXPECT_LT(mean_difference(got, expected, static_cast<std::size_t>(test.tokens)), kExact);
    const auto in_memory = load_fused(golden_dir() / test.base, adapter_dir(test.adapter));
    EXPECT_THAT(in_memory.loaded.warnings, ElementsAre());
    EXPECT_EQ(in_memory.adapter_identity, read_adapter(adapter_dir(test.adapter)).identity);
    EXPECT_TRUE(same_bits(run_alone(*in_memory.loaded.model, {}, tokens), got));
    EXPECT_TRUE(has_own_vocabulary(golden_dir() / test.base, adapter_dir(test.adapter)));

    const auto base = load::load_checkpoint(golden_dir() / test.base);
    expect_error(ErrorCode::kInvalidArgument, {"tokens and the base 96", "--fuse"}, [&] {
      load_adapter(adapter_dir(test.adapter), *base.model);
    });
    expect_error(ErrorCode::kInvalidArgument, {"strength", "0.5"}, [&] {
      fuse(golden_dir() / test.base, adapter_dir(test.adapter), dir.path() / "half", {0.5F, {}});
    });
  }
}

TEST(Fuse, ResizesEmbeddingAndHeadTogether) {
  const TemporaryDir dir;
  const auto copy_without = [&](std::string_view left_out, std::int64_t head_rows) {
    auto tensors = load::read_safetensors(adapter_dir("peft_resized") / kPeftWeights);
    load::NamedTensors kept;
    for (auto& [name, tensor] : tensors) {
      if (name.ends_with("lm_head.weight")) {
        tensor.shape.front() = head_rows;
      }
      if (!name.ends_with(left_out)) {
        kept.emplace_back(name, tensor);
      }
    }
    std::filesystem::create_directory(dir.path() / "adapter");
    load::write_safetensors(dir.path() / "adapter" / kPeftWeights, kept, {});
    std::filesystem::copy_file(
        adapter_dir("peft_resized") / kAdapterConfig,
        dir.path() / "adapter" / kAdapterConfig,
        std::filesystem::copy_options::overwrite_existing
    );
  };
  const auto refuse = [&](const std::vector<std::string_view>& words) {
    expect_error(ErrorCode::kInvalidArgument, words, [&] {
      fuse(golden_dir() / "llama", dir.path() / "adapter", dir.path() / "fused", {});
    });
  };
  copy_without("lm_head.weight", 101);
  refuse({"101 tokens", "only one of embedding and head"});
  copy_without("embed_tokens.weight", 101);
  refuse({"101 tokens", "only one"});
  copy_without("nothing", 100);
  refuse({"lm_head", "100", "101"});
}

// Two shards and an index; files that describe text come along, weights of other forms don't.
TEST(Fuse, KeepsShardsAndTexts) {
  const TemporaryDir dir;
  const auto base = dir.path() / "base";
  std::filesystem::copy(golden_dir() / "llama", base);
  std::filesystem::rename(base / "golden.safetensors", dir.path() / "golden");
  auto tensors = load::read_safetensors(base / "model.safetensors");
  load::NamedTensors shards[2];
  Json map = Json::object();
  for (const auto& [name, tensor] : tensors) {
    const std::size_t shard = name.find("layers.1") == std::string::npos ? 0 : 1;
    shards[shard].emplace_back(name, tensor);
    map[name] = fmt::format("model-0000{}-of-00002.safetensors", shard + 1);
  }
  for (const int i : {0, 1}) {
    load::write_safetensors(
        base / fmt::format("model-0000{}-of-00002.safetensors", i + 1), shards[i], {}
    );
  }
  dir.write("base/model.safetensors.index.json", Json{{"weight_map", map}}.dump());
  std::filesystem::remove(base / "model.safetensors");
  dir.write("base/tokenizer_config.json", "{}");
  dir.write("base/pytorch_model.bin", "pickle");
  std::size_t done = 0;
  const auto report = fuse(
      base,
      adapter_dir("peft_llama"),
      dir.path() / "fused",
      {
          .strength = 1.0F,
          .progress =
              [&](std::size_t now, std::size_t total) {
                EXPECT_EQ(now, done++);
                EXPECT_EQ(total, tensors.size());
              },
      }
  );
  EXPECT_EQ(done, tensors.size());
  EXPECT_EQ(report.tensors, tensors.size());
  const Json index = read_json_file(dir.path() / "fused/model.safetensors.index.json");
  EXPECT_EQ(index["metadata"]["total_size"], report.bytes);
  EXPECT_EQ(index["weight_map"].size(), map.size());
  for (const auto& [name, shard] : map.items()) {
    EXPECT_EQ(index["weight_map"][name], shard);
  }
  EXPECT_TRUE(std::filesystem::exists(dir.path() / "fused/tokenizer_config.json"));
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "fused/pytorch_model.bin"));
  EXPECT_THAT(load::load_checkpoint(dir.path() / "fused").warnings, ElementsAre());
}

TEST(Fuse, FailsWithoutATrace) {
  const TemporaryDir dir;
  const auto fuse_into = [&](std::string_view base, std::string_view adapter) {
    fuse(golden_dir() / base, adapter_dir(adapter), dir.path() / "fused", {});
  };
  expect_error(ErrorCode::kInvalidArgument, {"adapter"}, [&] { fuse_into("llama", "peft_moe"); });
  expect_error(ErrorCode::kNotFound, {"no folder"}, [&] { fuse_into("llama", "nothing"); });
  expect_error(ErrorCode::kInvalidArgument, {"strength"}, [&] {
    fuse(
        golden_dir() / "llama",
        adapter_dir("peft_llama"),
        dir.path() / "fused",
        {std::numeric_limits<float>::infinity(), {}}
    );
  });
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  dir.write("fused/file", "mine");
  expect_error(ErrorCode::kInvalidArgument, {"no empty folder"}, [&] {
    fuse_into("llama", "peft_llama");
  });
}

}  // namespace
}  // namespace saker::adapters

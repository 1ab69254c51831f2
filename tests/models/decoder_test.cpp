// SPDX-License-Identifier: Apache-2.0
#include "saker/models/decoder.h"

#include "saker/kernels/ops/activation.h"
#include "saker/models/architecture.h"

#include "tests/models/random_model.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>
#include <mlx/primitives.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace saker::models {
namespace {

using testing::expect_error;

const std::vector<int> kIds{3, 1, 4, 1, 5, 9, 2, 6};  // NOLINT(readability-identifier-naming)

mx::array logits_of(const Json& config, const nn::TensorMap& tensors) {
  const auto model = make_model(config, nn::Weights(tensors, {}), {});
  auto cache = model->make_cache({});
  return run_rows(*model, cache, kIds);
}

bool same(const mx::array& a, const mx::array& b) {
  return mx::array_equal(a, b).item<bool>();
}

TEST(Decoder, InfoSaysWhatTheModelIs) {
  const auto config = small_config("qwen3");
  const auto model = random_model(config, {});
  EXPECT_EQ(model->info().model_type, "qwen3");
  EXPECT_EQ(model->info().layer_count, 2);
  EXPECT_EQ(model->info().hidden_size, 32);
  EXPECT_EQ(model->info().vocab_size, 50);
  EXPECT_EQ(model->info().context_length, 256);
  // Two layers of q, k, v, o and the MLP, and the head, each row padded at most to 16.
  const std::size_t numbers = 2 * (32 * 32 * 2 + 2 * 16 * 32 + 3 * 64 * 32) + 50 * 32;
  EXPECT_GE(model->info().weight_bytes, numbers * 4);
  EXPECT_LE(model->info().weight_bytes, (numbers + 16 * 32) * 4);
}

TEST(Decoder, ReportsProgressByLayer) {
  const auto config = small_config("llama");
  std::vector<int> seen;
  make_model(config, nn::Weights(random_tensors(config, {}), {}), [&](int done, int total) {
    EXPECT_EQ(total, 2);
    seen.push_back(done);
  });
  EXPECT_EQ(seen, (std::vector<int>{1, 2}));
}

// MLX would otherwise hold the results of many layers at once.
TEST(Decoder, ALongPassNeedsTheMemoryOfFewLayers) {
  constexpr std::size_t kLayers = 24;
  constexpr std::size_t kRows = 256;
  constexpr std::size_t kIntermediate = 1024;
  auto config = small_config("llama");
  config["num_hidden_layers"] = kLayers;
  config["intermediate_size"] = kIntermediate;
  const auto model = random_model(config, {});
  auto cache = model->make_cache({});
  const std::vector<int> ids(kRows, 7);
  const std::size_t before = mx::get_active_memory();
  mx::reset_peak_memory();
  mx::eval(run_rows(*model, cache, ids));
  // Of the MLP alone: gates, whose place the activations take, and the upper half.
  const std::size_t layer_bytes = kRows * 2 * kIntermediate * sizeof(float);
  EXPECT_GT(mx::get_peak_memory() - before, layer_bytes);
  EXPECT_LT(mx::get_peak_memory() - before, 4 * layer_bytes);
}

// Counts the operations that an array waits for, by name.
std::map<std::string, int> operations_of(const mx::array& result) {
  std::map<std::string, int> counts;
  std::set<std::uintptr_t> seen;
  std::vector<mx::array> left = {result};
  while (!left.empty()) {
    const mx::array x = left.back();
    left.pop_back();
    if (x.has_primitive() && seen.insert(x.primitive_id()).second) {
      ++counts[x.primitive().name()];
      left.insert(left.end(), x.inputs().begin(), x.inputs().end());
    }
  }
  return counts;
}

TEST(Decoder, ALayerIsTwoOperations) {
  for (const auto* type : {"llama", "qwen2", "qwen3"}) {
    const auto model = random_model(small_config(type), {});
    auto cache = model->make_cache({});
    nn::ForwardContext context({{&cache, 4}});
    auto counts = operations_of(model->forward(mx::array({4, 0, 49, 7}, mx::int32), context));
    // Those of the second layer: the first one and the norm before it have begun.
    EXPECT_EQ(counts["SakerAttentionBlock"], 1) << type;
    EXPECT_EQ(counts["SakerMlpBlock"], 1) << type;
    EXPECT_EQ(counts["SakerNorm"], 0) << type;
    EXPECT_EQ(counts["Linear"], 0) << type;
    EXPECT_EQ(counts["SakerNormResidual"], 0) << type;
  }
}

TEST(Decoder, RefusesToCaptureLayersThatAreNotThere) {
  const auto model = random_model(small_config("qwen3_5"), {});
  for (const int layer : {-2, 3}) {
    auto cache = model->make_cache({});
    nn::ForwardContext context({{&cache, 1}});
    context.captured_layers = {0, layer};
    expect_error(ErrorCode::kInvalidArgument, {"tap", std::to_string(layer), "-1", "to 2"}, [&] {
      model->forward(mx::array({1}, mx::int32), context);
    });
    EXPECT_EQ(cache.offset(), 0);
  }
}

TEST(Decoder, LendsItsTokenTableAndHead) {
  // Gemma 2 scales embedded rows and caps logits.
  const auto model = random_model(small_config("gemma2"), {});
  auto cache = model->make_cache({});
  nn::ForwardContext context({{&cache, 3}});
  context.captured_layers = {-1};
  const auto ids = mx::array({4, 0, 49}, mx::int32);
  const auto hidden = model->forward(ids, context);
  const mx::array scale(std::sqrt(32.0F));
  EXPECT_TRUE(same(mx::multiply(model->embed(ids), scale), context.captured.at(-1)));
  const auto products = model->head_products(hidden);
  EXPECT_FALSE(same(products, model->unembed(hidden, {})));
  EXPECT_TRUE(same(kernels::softcap(products, 10.0F), model->unembed(hidden, {})));
}

TEST(Decoder, TheTokenTableMayHaveAnotherName) {
  const auto config = small_config("generic");
  const auto tensors = random_tensors(config, {});
  const auto expected = logits_of(config, tensors);
  for (const std::string table : {"embedding", "token_embedding", "wte"}) {
    for (const std::string scope : {"", "model."}) {
      nn::TensorMap renamed;
      for (const auto& [name, tensor] : tensors) {
        const bool in_body = name.starts_with("model.");
        renamed[in_body ? scope + name.substr(6) : name] = tensor;
      }
      renamed[scope + table + ".weight"] = renamed.at(scope + "embed_tokens.weight");
      renamed.erase(scope + "embed_tokens.weight");
      EXPECT_TRUE(same(logits_of(config, renamed), expected)) << scope << table;
    }
  }
}

TEST(Decoder, GreedyTokensOfTheHead) {
  for (const auto* type : {"llama", "gemma2"}) {
    const auto model = random_model(small_config(type), {});
    auto cache = model->make_cache({});
    nn::ForwardContext context({{&cache, 4}});
    const auto hidden = model->forward(mx::array({4, 0, 49, 7}, mx::int32), context);
    const auto tokens = lm_head_argmax(*model, hidden);
    EXPECT_EQ(tokens.shape(), (mx::Shape{4}));
    EXPECT_EQ(tokens.dtype(), mx::int32);
    auto logits = model->unembed(hidden, {});
    logits.eval();
    for (int row = 0; row < 4; ++row) {
      const float* const first = logits.data<float>() + row * 50;
      EXPECT_EQ(
          mx::slice(tokens, {row}, {row + 1}).item<int>(),
          std::max_element(first, first + 50) - first
      );
    }
    EXPECT_EQ(lm_head_argmax(*model, mx::zeros_like(hidden)).shape(0), 4);
  }
  // Equal logits: the lowest id.
  const auto model = random_model(small_config("llama"), {});
  EXPECT_EQ(lm_head_argmax(*model, mx::zeros({1, 32})).item<int>(), 0);
}

TEST(Decoder, TheHeadIsTiedAsTheConfigurationSays) {
  auto config = small_config("llama");
  auto tensors = random_tensors(config, {});
  auto tied_tensors = tensors;
  tied_tensors.erase("lm_head.weight");
  auto equal_tensors = tensors;
  equal_tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"];

  config["tie_word_embeddings"] = false;
  const auto untied = logits_of(config, tensors);
  const auto shared = logits_of(config, equal_tensors);
  EXPECT_FALSE(same(untied, shared));
  expect_error(ErrorCode::kCorruptData, {"lm_head.weight", "tie_word_embeddings"}, [&] {
    logits_of(config, tied_tensors);
  });

  config["tie_word_embeddings"] = true;  // A stray head is not used.
  EXPECT_TRUE(same(logits_of(config, tensors), shared));
  EXPECT_TRUE(same(logits_of(config, tied_tensors), shared));

  config.erase("tie_word_embeddings");
  EXPECT_TRUE(same(logits_of(config, tensors), untied));
  EXPECT_TRUE(same(logits_of(config, tied_tensors), shared));
}

TEST(Decoder, GemmaIsAlwaysTied) {
  for (const auto* type : {"gemma", "gemma2"}) {
    const auto config = small_config(type);
    auto tensors = random_tensors(config, {});
    const auto with_head = logits_of(config, tensors);
    tensors.erase("lm_head.weight");
    EXPECT_TRUE(same(logits_of(config, tensors), with_head)) << type;
  }
}

TEST(Decoder, BiasesAreAppliedWhereTheyExist) {
  auto config = small_config("llama");
  const auto biased = random_tensors(config, {.biases = true});
  config["attention_bias"] = false;
  config["mlp_bias"] = false;
  const auto logits = logits_of(config, biased);
  for (const auto* name :
       {"model.layers.0.self_attn.q_proj.bias",
        "model.layers.1.self_attn.v_proj.bias",
        "model.layers.0.self_attn.o_proj.bias",
        "model.layers.1.mlp.gate_proj.bias",
        "model.layers.0.mlp.down_proj.bias"}) {
    auto fewer = biased;
    fewer.erase(name);
    EXPECT_FALSE(same(logits_of(config, fewer), logits)) << name;
  }
}

TEST(Decoder, FindsTheTextPartBelowOtherNames) {
  const auto config = small_config("gemma3_text");
  auto tensors = random_tensors(config, {});
  tensors.erase("lm_head.weight");
  const auto logits = logits_of(config, tensors);
  for (const auto* prefix :
       {"language_model.model.", "model.language_model.", "language_model.", ""}) {
    nn::TensorMap renamed;
    for (const auto& [name, tensor] : tensors) {
      renamed[prefix + name.substr(6)] = tensor;
    }
    EXPECT_TRUE(same(logits_of(config, renamed), logits)) << prefix;
  }
}

TEST(Decoder, MissingTensorsAreNamed) {
  const auto config = small_config("qwen3");
  for (const auto* name :
       {"model.embed_tokens.weight",
        "model.norm.weight",
        "model.layers.1.self_attn.k_norm.weight",
        "model.layers.0.mlp.up_proj.weight"}) {
    auto tensors = random_tensors(config, {});
    tensors.erase(name);
    expect_error(ErrorCode::kCorruptData, {name, "missing"}, [&] { logits_of(config, tensors); });
  }
}

TEST(Decoder, TensorsMustFitTheConfiguration) {
  auto config = small_config("llama");
  const auto tensors = random_tensors(config, {});
  const auto refused = [&](std::string_view key, int value, std::string_view word) {
    auto other = config;
    other[std::string(key)] = value;
    expect_error(ErrorCode::kCorruptData, {word}, [&] { logits_of(other, tensors); });
  };
  refused("vocab_size", 51, "embed_tokens.weight");
  refused("hidden_size", 64, "embed_tokens.weight");
  refused("num_key_value_heads", 4, "k_proj.weight");
  refused("head_dim", 10, "q_proj.weight");
  refused("intermediate_size", 60, "gate_proj.weight");
  refused("num_hidden_layers", 3, "model.layers.2.");
  refused("num_hidden_layers", 4000, "model.layers.2.");
}

TEST(Decoder, CachesFollowWindowsAndBounds) {
  auto config = small_config("gemma2");
  config["sliding_window"] = 6;
  const auto model = random_model(config, {});
  auto cache = model->make_cache({});
  EXPECT_EQ(cache.layer(0).kind(), "RotatingKVCache");
  EXPECT_EQ(cache.layer(0).max_size(), 6);
  EXPECT_EQ(cache.layer(1).kind(), "KVCache");
  const auto bounded = model->make_cache({.max_kv_size = 20});
  EXPECT_EQ(bounded.layer(0).max_size(), 6);
  EXPECT_EQ(bounded.layer(1).max_size(), 20);
  expect_error(ErrorCode::kInvalidArgument, {"max_kv_size", "-1"}, [&] {
    model->make_cache({.max_kv_size = -1});
  });
  // Two kv heads of 8, keys and values, float32: 128 bytes a row and layer.
  EXPECT_EQ(model->cache_bytes(4, 16), 2 * 4 * 128U);
  EXPECT_EQ(model->cache_bytes(100, 16), (6 + 100) * 128U);
}

TEST(Decoder, AVeryBoundedCacheStillRuns) {
  const auto model = random_model(small_config("llama"), {});
  for (const int size : {1, 2, 5}) {
    auto cache = model->make_cache({.max_kv_size = size});
    auto whole = run_rows(*model, cache, kIds);
    auto stepwise = model->make_cache({.max_kv_size = size});
    mx::array last = whole;
    for (const int id : kIds) {
      last = run_rows(*model, stepwise, {id});
    }
    EXPECT_TRUE(same(last, mx::slice(whole, {7, 0}, whole.shape()))) << size;
  }
}

TEST(Decoder, CacheRowsAreFloat32OnlyForFloat32Checkpoints) {
  const auto bytes = [](kernels::WeightFormat format) {
    return random_model(small_config("llama"), {.format = format})->cache_bytes(1, 16);
  };
  EXPECT_EQ(bytes({.kind = kernels::WeightKind::kFloat32}), 2 * 128U);
  EXPECT_EQ(bytes({.kind = kernels::WeightKind::kBFloat16}), 2 * 64U);
  EXPECT_EQ(
      bytes({.kind = kernels::WeightKind::kAffine, .bits = 4, .group_size = 32}), 0 + 2 * 64U
  );
}

TEST(Decoder, RowsAndIdsMustAgree) {
  const auto model = random_model(small_config("llama"), {});
  auto cache = model->make_cache({});
  nn::ForwardContext context({{&cache, 3}});
  expect_error(ErrorCode::kInvalidArgument, {"2", "3"}, [&] {
    model->forward(mx::array({1, 2}), context);
  });
}

}  // namespace
}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
// EAGLE-3 heads: configurations in their spellings, logits against tools/make_eagle3_goldens.py, and
// heads that are not what they should be.
#include "saker/models/eagle3.h"

#include "saker/load/checkpoint.h"
#include "saker/load/draft.h"

#include "tests/models/random_eagle3.h"
#include "tests/support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::models {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

constexpr std::string_view kLayerIds = "eagle_aux_hidden_state_layer_ids";

ModelInfo eagle3_target() {
  ModelInfo target;
  target.layer_count = 2;
  target.hidden_size = 32;
  target.vocab_size = 50;
  return target;
}

TEST(Eagle3Config, IsToldByItsNames) {
  EXPECT_TRUE(is_eagle3_config(small_eagle3_config()));
  EXPECT_TRUE(is_eagle3_config(small_speculators_config()));
  Json first = small_eagle3_config();
  first["architectures"] = {"LlamaForCausalLM"};
  EXPECT_TRUE(is_eagle3_config(first));
  first.erase("draft_vocab_size");
  EXPECT_FALSE(is_eagle3_config(first));
  Json other = small_speculators_config();
  other["speculators_model_type"] = "eagle";
  EXPECT_FALSE(is_eagle3_config(other));
  EXPECT_FALSE(is_eagle3_config(Json::array()));
  EXPECT_FALSE(is_eagle3_config(small_config("llama")));
}

TEST(Eagle3Config, IsReadInAllSpellings) {
  const Eagle3Config flat = read_eagle3_config(small_eagle3_config());
  EXPECT_EQ(flat.decoder.hidden, 32);
  EXPECT_EQ(flat.target_hidden, 32);
  EXPECT_EQ(flat.draft_vocab_size, 40);
  EXPECT_TRUE(flat.reads_layers);
  EXPECT_TRUE(flat.target_layers.empty());
  EXPECT_FALSE(flat.norm_before_residual);
  EXPECT_FALSE(flat.norm_output);
  const Eagle3Config nested = read_eagle3_config(small_speculators_config());
  EXPECT_EQ(nested.decoder.hidden, 24);
  EXPECT_EQ(nested.target_hidden, 32);
  EXPECT_EQ(nested.decoder.layers[0].window, 9);
  EXPECT_EQ(nested.decoder.layers[1].window, 0);
  EXPECT_TRUE(nested.norm_before_residual);
  EXPECT_TRUE(nested.norm_before_fc && nested.norm_each_tap && nested.norm_output);
}

// At the root, number N is the input of layer N; in `eagle_config`, the output.
TEST(Eagle3Config, LayersAreNumberedInTwoWays) {
  Json json = small_eagle3_config();
  json[kLayerIds] = {0, 3, 5};
  EXPECT_THAT(read_eagle3_config(json).target_layers, ElementsAre(-1, 2, 4));
  json["eagle_config"] = {{kLayerIds, {1, 46, 90, 92}}};
  const Eagle3Config config = read_eagle3_config(json);
  EXPECT_THAT(config.target_layers, ElementsAre(1, 46, 90, 92));
  EXPECT_EQ(config.tap_count, 4);
  EXPECT_THAT(default_eagle3_layers(94), ElementsAre(1, 46, 90));
  EXPECT_THAT(default_eagle3_layers(36), ElementsAre(1, 17, 32));
  EXPECT_THAT(default_eagle3_layers(2), ElementsAre(1, 0, 0));
  EXPECT_THAT(default_eagle3_layers(1), ElementsAre(0, 0, 0));
}

TEST(Eagle3Config, RefusesNumbersOutOfRange) {
  const auto refuses = [](std::string_view key, const Json& value, std::string_view word) {
    for (const bool own : {false, true}) {
      Json json = small_eagle3_config();
      if (own) {
        json["eagle_config"] = {{key, value}};
      } else {
        json[key] = value;
      }
      expect_error(ErrorCode::kCorruptData, {key, word}, [&] { read_eagle3_config(json); });
    }
  };
  refuses(kLayerIds, Json::array(), "array");
  refuses(kLayerIds, "2", "array");
  refuses(kLayerIds, {1, -1, 3}, "-1");
  refuses(kLayerIds, {1, 0.5, 3}, "0.5");
  refuses(kLayerIds, {1, 100000, 3}, "100000");
  refuses("num_aux_hidden_states", 4, "4");
  for (const auto* flag :
       {"use_aux_hidden_state",
        "norm_before_fc",
        "fc_norm",
        "norm_output",
        "norm_before_residual",
        "use_last_layernorm"}) {
    refuses(flag, 1, flag);
  }
  for (const auto& [key, value] : std::vector<std::pair<std::string, Json>>{
           {"draft_vocab_size", 51},
           {"draft_vocab_size", 0},
           {"draft_vocab_size", "40"},
           {"target_hidden_size", -3},
           {"target_hidden_size", 1e300},
           {"hidden_size", std::numeric_limits<double>::quiet_NaN()},
           {"num_hidden_layers", 1000000},
           {"eagle_config", 3},
           {"transformer_layer_config", Json::array()}
       }) {
    Json json = small_eagle3_config();
    json[key] = value;
    expect_error(ErrorCode::kCorruptData, {key}, [&] { read_eagle3_config(json); });
  }
}

TEST(Eagle3Config, RefusesOtherHeads) {
  const auto refuses = [](std::string_view key, const Json& value) {
    Json json = small_eagle3_config();
    json[key] = value;
    expect_error(ErrorCode::kUnsupported, {key}, [&] { read_eagle3_config(json); });
  };
  refuses("model_type", "kimi_k2");
  refuses("use_input_layernorm_in_first_layer", false);
  refuses("use_last_layernorm", false);
  refuses("use_mtp_layernorm", true);
  refuses("use_moe", true);
  refuses("parallel_draft_step", 4);
  Json json = small_eagle3_config();
  json["eagle_config"] = {{"use_aux_hidden_state", false}};
  EXPECT_FALSE(read_eagle3_config(json).reads_layers);
  json["target_hidden_size"] = 48;
  expect_error(ErrorCode::kCorruptData, {"target_hidden_size", "48", "32"}, [&] {
    read_eagle3_config(json);
  });
}

TEST(Eagle3Config, RefusesOtherTargets) {
  const auto refuses = [](std::string_view key, const Json& value, std::string_view expected) {
    Json json = small_eagle3_config();
    json[key] = value;
    expect_error(ErrorCode::kInvalidArgument, {key, value.dump(), expected}, [&] {
      check_target(read_eagle3_config(json), eagle3_target());
    });
  };
  EXPECT_NO_THROW(check_target(read_eagle3_config(small_eagle3_config()), eagle3_target()));
  refuses("hidden_size", 40, "32");
  refuses("vocab_size", 60, "50");
  refuses("target_hidden_size", 36, "32");
  Json json = small_eagle3_config();
  json["eagle_config"] = {{kLayerIds, {0, 1, 2}}};
  expect_error(ErrorCode::kInvalidArgument, {"layer 2"}, [&] {
    check_target(read_eagle3_config(json), eagle3_target());
  });
  json = small_eagle3_config();
  json["hidden_size"] = 24;
  json["target_hidden_size"] = 32;
  expect_error(ErrorCode::kInvalidArgument, {"24", "embed_tokens", "32"}, [&] {
    auto tensors = random_eagle3_tensors(json);
    tensors.erase("embed_tokens.weight");
    eagle3_of(json, eagle3_target(), tensors);
  });
}

float largest_gap(const mx::array& one, const mx::array& other) {
  return mx::max(mx::abs(mx::subtract(one, other))).item<float>();
}

// Captured hidden states of these tokens.
mx::array captured_of(const Model& model, const std::vector<int>& layers, const mx::array& ids) {
  auto cache = model.make_cache({});
  nn::ForwardContext context({{&cache, ids.shape(0)}});
  context.captured_layers = layers;
  const auto rows = model.forward(ids, context);
  std::vector<std::int32_t> all;
  for (std::int32_t i = 0; i < ids.shape(0); ++i) {
    all.push_back(i);
  }
  return context.captured_hidden(rows, all);
}

class Eagle3Goldens : public ::testing::TestWithParam<const char*> {};

TEST_P(Eagle3Goldens, LogitsOfTrueTokens) {
  const auto dir = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/eagle3" / GetParam();
  const auto target = load::load_checkpoint(dir / "target").model;
  const auto draft = load::load_draft(dir, target->info());
  ASSERT_NE(draft.eagle3, nullptr);
  EXPECT_TRUE(draft.warnings.empty());
  const Eagle3Head& head = *draft.eagle3;
  const auto golden = mx::load_safetensors((dir / "golden.safetensors").string()).first;
  const auto ids = mx::concatenate({golden.at("ids"), golden.at("tokens")});
  const int rows = ids.shape(0) - 1;
  const auto features = captured_of(*target, head.captured_layers(target->info()), ids);
  const auto next = mx::slice(ids, {1}, {rows + 1});
  for (const int first_pass : {rows, 1, 7}) {
    auto cache = head.make_cache({});
    std::vector<mx::array> parts;
    for (const auto& [first, end] : {std::pair{0, first_pass}, {first_pass, rows}}) {
      if (first < end) {
        nn::ForwardContext context({{&cache, end - first}});
        parts.push_back(head.forward(
            mx::slice(next, {first}, {end}),
            mx::slice(features, {first, 0}, {end, features.shape(1)}),
            context,
            *target
        ));
        mx::eval(parts.back());
      }
    }
    const auto logits = head.logits(mx::concatenate(parts, 0), *target);
    const auto known = mx::take(logits, golden.at("known"), 1);
    EXPECT_LT(largest_gap(known, golden.at("logits")), 3e-5F);
    const auto unknown = mx::sum(mx::isneginf(logits)).item<int>();
    EXPECT_EQ(unknown, rows * (96 - golden.at("known").shape(0)));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    Eagle3Goldens,
    ::testing::ValuesIn(kEagle3Goldens),
    [](const auto& test) { return std::string(test.param); }
);

TEST(Eagle3Head, NamesTensorsThatAreMissingOrOfAnotherShape) {
  Json final_rows = small_eagle3_config();
  final_rows["eagle_config"] = {{"use_aux_hidden_state", false}};
  for (const Json& config : {small_eagle3_config(), small_speculators_config(), final_rows}) {
    const auto tensors = random_eagle3_tensors(config);
    for (const auto& [name, tensor] : tensors) {
      if (name == "embed_tokens.weight") {
        continue;
      }
      auto fewer = tensors;
      fewer.erase(name);
      const auto build = [&] { eagle3_of(config, eagle3_target(), fewer); };
      expect_error(ErrorCode::kCorruptData, {name}, build);
      fewer[name] = nn::float_tensor({3}, {1, 2, 3});
      expect_error(ErrorCode::kCorruptData, {name}, build);
    }
  }
}

TEST(Eagle3Head, TensorsMayHavePrefixes) {
  const Json config = small_eagle3_config();
  nn::TensorMap moved;
  for (const auto& [name, tensor] : random_eagle3_tensors(config)) {
    const bool of_layer = name.starts_with("layers.0.");
    moved["model." + (of_layer ? "midlayer." + name.substr(9) : name)] = tensor;
  }
  EXPECT_NO_THROW(eagle3_of(config, eagle3_target(), moved));
  moved["norm.weight"] = moved["model.norm.weight"];
  expect_error(ErrorCode::kCorruptData, {"norm.weight", "twice"}, [&] { eagle3_tensors(moved); });
}

TEST(Eagle3Head, AFolderHoldsOneDraft) {
  auto tensors = random_eagle3_tensors(small_eagle3_config());
  tensors["mtp.fc.weight"] = tensors["fc.weight"];
  expect_error(ErrorCode::kUnsupported, {"mtp.fc.weight", "MTP head", "EAGLE-3 head"}, [&] {
    eagle3_tensors(tensors);
  });
}

TEST(Eagle3Head, RefusesTokensOutOfRange) {
  const Json config = small_eagle3_config();
  const auto refuses = [&](std::int64_t offset, std::string_view word) {
    auto tensors = random_eagle3_tensors(config);
    std::vector<std::int64_t> offsets(40, 0);
    offsets[5] = offset;
    tensors["d2t"] = int_tensor(offsets);
    expect_error(ErrorCode::kCorruptData, {"d2t", word}, [&] {
      eagle3_of(config, eagle3_target(), tensors);
    });
  };
  refuses(-6, "-6");
  refuses(45, "45");
  refuses(1, "token 6 twice");
  refuses(std::numeric_limits<std::int64_t>::min(), "-9223372036854775808");
  refuses(std::numeric_limits<std::int64_t>::max(), "9223372036854775807");
  auto tensors = random_eagle3_tensors(config);
  tensors["d2t"] = int_tensor({1, 2, 3});
  expect_error(ErrorCode::kCorruptData, {"d2t", "I64 [3]", "[40]"}, [&] {
    eagle3_of(config, eagle3_target(), tensors);
  });
}

TEST(Eagle3Head, TheWholeVocabularyMayShareAHead) {
  Json config = small_eagle3_config();
  config["draft_vocab_size"] = 50;
  auto tensors = random_eagle3_tensors(config);
  EXPECT_FALSE(tensors.contains("lm_head.weight"));
  EXPECT_NO_THROW(eagle3_of(config, eagle3_target(), tensors));
  // Its own embedding, if the configuration says so.
  config["hidden_size"] = 24;
  config["target_hidden_size"] = 32;
  tensors = random_eagle3_tensors(config);
  tensors.erase("lm_head.weight");
  expect_error(ErrorCode::kCorruptData, {"lm_head.weight"}, [&] {
    eagle3_of(config, eagle3_target(), tensors);
  });
  config["tie_word_embeddings"] = true;
  EXPECT_NO_THROW(eagle3_of(config, eagle3_target(), tensors));
}

TEST(Eagle3Head, RefusesRowsOfAnotherWidth) {
  const auto model = random_model(small_config("qwen3"), {});
  const auto head = random_eagle3(small_eagle3_config(), model->info());
  auto cache = head->make_cache({});
  nn::ForwardContext context({{&cache, 1}});
  const auto ids = mx::array({4}, mx::int32);
  expect_error(ErrorCode::kInvalidArgument, {"[1, 32]", "96"}, [&] {
    head->forward(ids, mx::zeros({1, 32}), context, *model);
  });
  expect_error(ErrorCode::kInvalidArgument, {"[1, 96]", "32"}, [&] {
    head->go_on(ids, mx::zeros({1, 96}), context, *model);
  });
}

}  // namespace
}  // namespace saker::models

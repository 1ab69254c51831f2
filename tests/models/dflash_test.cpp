// SPDX-License-Identifier: Apache-2.0
// DFlash drafts: their configurations, and logits against tools/make_dflash_goldens.py and
// tools/make_dflash_mlx_goldens.py.
#include "saker/models/dflash.h"

#include "saker/load/checkpoint.h"
#include "saker/load/draft.h"

#include "tests/models/random_dflash.h"
#include "tests/support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace saker::models {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

// The root-level spelling of small_dflash_config.
Json at_root() {
  Json config = small_dflash_config();
  const Json own = config["dflash_config"];
  config.erase("dflash_config");
  config.update(own);
  return config;
}

TEST(DflashConfig, IsToldByItsNumbers) {
  EXPECT_TRUE(is_dflash_config(small_dflash_config()));
  EXPECT_TRUE(is_dflash_config(at_root()));
  EXPECT_FALSE(is_dflash_config(small_config("qwen3")));
  EXPECT_FALSE(is_dflash_config(Json::array()));
  Json masked = small_config("qwen3");
  masked["mask_token_id"] = 3;
  EXPECT_FALSE(is_dflash_config(masked));
  expect_error(ErrorCode::kUnsupported, {"mask_token_id", "DFlash"}, [&] {
    read_dflash_config(masked);
  });
}

TEST(DflashConfig, IsReadWhereverItsNumbersAre) {
  Json legacy = small_dflash_config();
  legacy["block_size"] = 8;
  legacy["dflash_config"].erase("block_size");
  for (const Json& json : {small_dflash_config(), legacy, at_root()}) {
    const DflashConfig config = read_dflash_config(json);
    EXPECT_EQ(config.block_size, 8);
    EXPECT_EQ(config.mask_token, 49);
    EXPECT_THAT(config.target_layers, ElementsAre(1, 0));
    EXPECT_EQ(config.target_layer_count, 2);
    EXPECT_EQ(config.decoder.layers[0].window, 9);
    EXPECT_EQ(config.decoder.layers[1].window, 0);
    EXPECT_FALSE(config.second);
  }
  legacy.erase("block_size");
  EXPECT_EQ(read_dflash_config(legacy).block_size, 16);
}

TEST(DflashConfig, TheOutermostThetaWins) {
  Json json = small_dflash_config();
  const auto theta = [&] { return read_dflash_config(json).decoder.ropes.front().theta; };
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 5e6}};
  EXPECT_EQ(theta(), 1e4);
  json.erase("rope_theta");
  EXPECT_EQ(theta(), 5e6);
  json.erase("rope_parameters");
  json["rope_scaling"] = {{"rope_theta", 7e6}};
  EXPECT_EQ(theta(), 7e6);
}

TEST(DflashConfig, SlidingLayersAreCausalUnlessSaidOtherwise) {
  Json json = small_dflash_config();
  EXPECT_THAT(read_dflash_config(json).causal, ElementsAre(true, false));
  EXPECT_THAT(read_dflash_config(at_root()).causal, ElementsAre(false, false));
  for (const bool causal : {false, true}) {
    json["is_causal"] = causal;
    EXPECT_THAT(read_dflash_config(json).causal, ElementsAre(causal, causal));
  }
}

TEST(DflashConfig, DefaultLayersOfTheTarget) {
  EXPECT_THAT(default_target_layers(24, 1), ElementsAre(12));
  EXPECT_THAT(default_target_layers(64, 2), ElementsAre(1, 61));
  EXPECT_THAT(default_target_layers(64, 4), ElementsAre(1, 21, 41, 61));
  EXPECT_THAT(default_target_layers(36, 5), ElementsAre(1, 9, 17, 25, 33));
  EXPECT_THAT(default_target_layers(32, 5), ElementsAre(1, 8, 15, 22, 29));
  EXPECT_THAT(default_target_layers(40, 5), ElementsAre(1, 10, 19, 28, 37));
  Json json = small_dflash_config();
  json["dflash_config"].erase("target_layer_ids");
  json["num_hidden_layers"] = 1;
  json["layer_types"] = {"full_attention"};
  EXPECT_THAT(read_dflash_config(json).target_layers, ElementsAre(1));
  json.erase("num_target_layers");
  expect_error(ErrorCode::kCorruptData, {"num_target_layers"}, [&] { read_dflash_config(json); });
}

TEST(DflashConfig, RefusesNumbersOutOfRange) {
  const auto refuses = [](std::string_view key, const Json& value, std::string_view word) {
    Json json = small_dflash_config(true);
    json["dflash_config"][key] = value;
    expect_error(ErrorCode::kCorruptData, {key, word}, [&] { read_dflash_config(json); });
  };
  refuses("mask_token_id", 50, "50");
  refuses("mask_token_id", -1, "-1");
  refuses("mask_token_id", "49", "49");
  refuses("block_size", 1, "1");
  refuses("block_size", 100000, "100000");
  refuses("target_layer_ids", Json::array(), "array");
  refuses("target_layer_ids", {1, -1}, "-1");
  refuses("target_layer_ids", {1, 0.5}, "0.5");
  refuses("target_layer_ids", "1", "array");
  refuses("conv_group_size", 5, "32");
  refuses("selector_top_k", 51, "51");
  refuses("input_embedding_scale", 0, "0");
  refuses("output_multiplier", -2, "-2");
  Json other = small_dflash_config();
  other["draft_vocab_size"] = 20;
  expect_error(ErrorCode::kUnsupported, {"draft_vocab_size", "20", "50"}, [&] {
    read_dflash_config(other);
  });
}

TEST(DflashConfig, RefusesOtherTargets) {
  ModelInfo target;
  target.layer_count = 2;
  target.hidden_size = 32;
  target.vocab_size = 50;
  const auto refuses = [&](std::string_view key, int value, std::string_view expected) {
    Json json = small_dflash_config();
    json[key] = value;
    expect_error(ErrorCode::kInvalidArgument, {key, std::to_string(value), expected}, [&] {
      check_target(read_dflash_config(json), target);
    });
  };
  EXPECT_NO_THROW(check_target(read_dflash_config(small_dflash_config()), target));
  refuses("hidden_size", 36, "32");
  refuses("vocab_size", 60, "50");
  refuses("num_target_layers", 4, "3");
  refuses("num_target_layers", 1, "2");
  Json counted = small_dflash_config();
  counted["num_target_layers"] = 3;  // With the embedding.
  EXPECT_NO_THROW(check_target(read_dflash_config(counted), target));
  counted["dflash_config"]["target_layer_ids"] = {0, 2};
  expect_error(ErrorCode::kInvalidArgument, {"layer 2"}, [&] {
    check_target(read_dflash_config(counted), target);
  });
}

TEST(DflashDraft, NamesTensorsThatAreMissingOrForeign) {
  for (const bool second : {false, true}) {
    const Json config = small_dflash_config(second);
    const auto tensors = random_dflash_tensors(config, 0);
    for (const auto& [name, tensor] : tensors) {
      auto fewer = tensors;
      fewer.erase(name);
      const auto build = [&] {
        const DflashDraft draft(read_dflash_config(config), nn::Weights(dflash_tensors(fewer), {}));
      };
      expect_error(ErrorCode::kCorruptData, {name}, build);
      fewer[name] = nn::float_tensor({3}, {1, 2, 3});
      expect_error(ErrorCode::kCorruptData, {name}, build);
    }
  }
  auto tensors = random_dflash_tensors(small_dflash_config(), 0);
  tensors["layers.0.self_attn.g_proj.weight"] = tensors["fc.weight"];
  expect_error(ErrorCode::kUnsupported, {"g_proj"}, [&] { dflash_tensors(tensors); });
}

TEST(DflashDraft, RefusesContextRowsOfAnotherWidth) {
  const auto draft = random_dflash(small_dflash_config());
  auto cache = draft->make_cache({});
  nn::ForwardContext context({{&cache, 2}});
  expect_error(ErrorCode::kInvalidArgument, {"2, 32", "2, 64"}, [&] {
    draft->remember(mx::zeros({2, 32}), context);
  });
  EXPECT_EQ(cache.offset(), 0);
}

std::vector<int> to_ints(const mx::array& array) {
  auto dense = mx::contiguous(array);
  mx::eval(dense);
  return {dense.data<int>(), dense.data<int>() + dense.size()};
}

class DflashGolden : public ::testing::TestWithParam<DflashGoldenFile> {
 protected:
  static constexpr float kTolerance = 1e-3F;

  void SetUp() override {
    const auto golden = std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/dflash";
    const auto dir = golden / GetParam().folder;
    target_ = load::load_checkpoint(golden / "target").model;
    loaded_ = load::load_draft(dir, target_->info());
    ASSERT_NE(loaded_.dflash, nullptr);
    for (auto& [name, array] : mx::load_safetensors((dir / GetParam().file).string()).first) {
      golden_.emplace(name, array);
    }
  }

  const DflashDraft& draft() const { return *loaded_.dflash; }

  const mx::array& golden(const std::string& name) const { return golden_.at(name); }

  // What the captured layers give for these tokens.
  mx::array features(const std::vector<int>& ids) const {
    auto cache = target_->make_cache({});
    const int count = static_cast<int>(ids.size());
    nn::ForwardContext context({{&cache, count}});
    context.captured_layers = draft().config().target_layers;
    std::vector<std::int32_t> rows(ids.size());
    std::iota(rows.begin(), rows.end(), 0);
    const auto hidden = target_->forward(mx::array(ids.data(), {count}, mx::int32), context);
    auto captured = context.captured_hidden(hidden, rows);
    mx::eval(captured);
    return captured;
  }

  // The rows of the masks that follow `last`.
  mx::array block(cache::SequenceCache& cache, int last, int masks) const {
    std::vector<int> ids(static_cast<std::size_t>(masks) + 1, draft().config().mask_token);
    ids.front() = last;
    nn::ForwardContext context({{&cache, masks + 1}});
    cache.begin();
    const auto tokens = mx::array(ids.data(), {masks + 1}, mx::int32);
    const auto hidden = draft().forward(target_->embed(tokens), context);
    auto rows = mx::slice(hidden, {1, 0}, hidden.shape());
    mx::eval(rows);
    cache.roll_back();
    return rows;
  }

  // The greedy choice of each row, the candidates of which follow each other.
  std::vector<int> choices(const mx::array& rows, const mx::array& logits, int last) const {
    auto dense = mx::contiguous(logits);
    auto projected = mx::zeros({1});
    const auto* selector = draft().selector();
    if (selector != nullptr) {
      projected = mx::contiguous(selector->project(rows));
    }
    mx::eval(dense, projected);
    const auto width = static_cast<std::size_t>(logits.shape(1));
    std::vector<int> result;
    for (int i = 0; i < logits.shape(0); ++i) {
      const std::span<float> row(dense.data<float>() + width * static_cast<std::size_t>(i), width);
      if (selector != nullptr) {
        const auto rank = static_cast<std::size_t>(projected.shape(1));
        selector->rescore(
            row, {projected.data<float>() + rank * static_cast<std::size_t>(i), rank}, last
        );
      }
      last = static_cast<int>(std::ranges::max_element(row) - row.begin());
      result.push_back(last);
    }
    return result;
  }

  std::unique_ptr<const Model> target_;

 private:
  load::LoadedDraft loaded_;
  std::map<std::string, mx::array> golden_;
};

TEST_P(DflashGolden, EveryTensorIsUsed) {
  const auto dir =
      std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden/dflash" / GetParam().folder;
  EXPECT_THAT(load::load_draft(dir, target_->info()).warnings, ElementsAre());
}

TEST_P(DflashGolden, LogitsAndTokensOfEveryRound) {
  auto ids = to_ints(golden("ids"));
  const auto tokens = to_ints(golden("tokens"));
  ids.insert(ids.end(), tokens.begin(), tokens.end());
  const auto all = features(ids);
  const auto lengths = to_ints(golden("context"));
  const int most = golden("drafts").shape(1);
  const auto drafts = to_ints(golden("drafts"));
  auto cache = draft().make_cache({});
  int known = 0;
  float largest = 0.0F;
  for (int round = 0; round < static_cast<int>(lengths.size()); ++round) {
    const int length = lengths[static_cast<std::size_t>(round)];
    nn::ForwardContext context({{&cache, length - known}});
    draft().remember(mx::slice(all, {known, 0}, {length, all.shape(1)}), context);
    known = length;
    const auto first = drafts.begin() + static_cast<std::ptrdiff_t>(round) * most;
    const std::vector<int> expected(first, std::find(first, first + most, -1));
    const int masks = static_cast<int>(expected.size());
    const int last = ids[static_cast<std::size_t>(length)];
    const auto rows = block(cache, last, masks);
    EXPECT_EQ(cache.offset(), length);
    const auto logits = draft().logits(rows, *target_);
    const auto wanted = mx::squeeze(
        mx::slice(golden("logits"), {round, 0, 0}, {round + 1, masks, logits.shape(1)}), 0
    );
    largest = std::max(largest, mx::max(mx::abs(mx::subtract(logits, wanted))).item<float>());
    EXPECT_EQ(choices(rows, logits, last), expected) << "round " << round;
  }
  EXPECT_LT(largest, kTolerance);
  RecordProperty("largest_difference", fmt::format("{:.1e}", largest));
}

INSTANTIATE_TEST_SUITE_P(
    All,
    DflashGolden,
    ::testing::ValuesIn(kDflashGoldens),
    [](const auto& test) { return std::string(test.param.name); }
);

}  // namespace
}  // namespace saker::models

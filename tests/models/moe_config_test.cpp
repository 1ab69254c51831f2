// SPDX-License-Identifier: Apache-2.0
// Configurations of architectures with experts.
#include "saker/models/moe_config.h"

#include "saker/models/architecture.h"
#include "saker/models/decoder_config.h"

#include "tests/models/changed_config.h"
#include "tests/models/random_model.h"
#include "tests/support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace saker::models {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

struct Fields {
  std::string_view model_type;
  std::vector<std::string_view> sizes;    // Positive integers.
  std::vector<std::string_view> counts;   // Integers from 0 on.
  std::vector<std::string_view> numbers;  // Positive.
  std::vector<std::string_view> flags;
};

const std::vector<Fields>& all_fields() {
  const std::vector<std::string_view> grouped{
      "n_routed_experts", "num_experts_per_tok", "moe_intermediate_size", "n_group", "topk_group"
  };
  const std::vector<std::string_view> usual{"num_experts_per_tok", "moe_intermediate_size"};
  const std::vector<std::string_view> local{"num_local_experts", "num_experts_per_tok"};
  static const std::vector<Fields> fields{
      {"cohere2_moe",
       {"num_experts", "num_experts_per_tok", "prefix_dense_sliding_window_pattern"},
       {"num_shared_experts", "prefix_dense_intermediate_size"},
       {},
       {}},
      {"dots1",
       grouped,
       {"n_shared_experts", "first_k_dense_replace"},
       {"routed_scaling_factor"},
       {"norm_topk_prob"}},
      {"ernie4_5_moe",
       {"moe_num_experts", "moe_k", "moe_intermediate_size", "moe_layer_interval"},
       {"moe_num_shared_experts", "moe_layer_start_index"},
       {},
       {}},
      {"glm4_moe",
       grouped,
       {"n_shared_experts", "first_k_dense_replace"},
       {"routed_scaling_factor"},
       {"norm_topk_prob", "use_qk_norm"}},
      {"granitemoe", local, {}, {"residual_multiplier", "logits_scaling"}, {}},
      {"hunyuan_v1_moe", {"num_experts", "moe_topk", "moe_intermediate_size"}, {}, {}, {}},
      {"minimax_m2", local, {}, {}, {}},
      {"mixtral", local, {}, {}, {}},
      {"olmoe", {"num_experts", "num_experts_per_tok"}, {}, {}, {"norm_topk_prob"}},
      {"qwen2_moe", usual, {"shared_expert_intermediate_size"}, {}, {"norm_topk_prob"}},
      {"qwen3_5_moe", usual, {"shared_expert_intermediate_size"}, {}, {}},
      {"qwen3_next", usual, {"shared_expert_intermediate_size"}, {}, {"norm_topk_prob"}},
      {"qwen3_vl_moe", usual, {}, {}, {}},
  };
  return fields;
}

class MoeConfig : public ::testing::TestWithParam<Fields> {
 protected:
  static void expect_refused(std::string_view key, const Json& value) {
    expect_error(ErrorCode::kCorruptData, {key}, [&] {
      check_config(config_with(GetParam().model_type, {{key, value}}));
    });
  }
};

TEST_P(MoeConfig, NamesBadValues) {
  const std::vector<Json> never{-3, 1'000'000'000, "many", 1.5, Json::array({"x"})};
  const std::vector<Json> no_numbers{0, -1, "x", std::nan(""), 1e300};
  check_config(config_with(GetParam().model_type, Json::object()));
  for (const std::string_view key : GetParam().sizes) {
    expect_refused(key, 0);
    for (const Json& value : never) {
      expect_refused(key, value);
    }
  }
  for (const std::string_view key : GetParam().counts) {
    for (const Json& value : never) {
      expect_refused(key, value);
    }
  }
  for (const std::string_view key : GetParam().numbers) {
    for (const Json& value : no_numbers) {
      expect_refused(key, value);
    }
  }
  for (const std::string_view key : GetParam().flags) {
    expect_refused(key, 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, MoeConfig, ::testing::ValuesIn(all_fields()), [](const auto& test) {
  return std::string(test.param.model_type);
});

std::vector<bool> expert_layers(const DecoderConfig& config) {
  std::vector<bool> result;
  result.reserve(config.layers.size());
  for (const auto& layer : config.layers) {
    result.push_back(layer.experts);
  }
  return result;
}

TEST(MoeConfigs, GroupsDivideExperts) {
  const auto refused = [](const std::vector<std::string_view>& words, const Json& changes) {
    expect_error(ErrorCode::kCorruptData, words, [&] {
      check_config(config_with("glm4_moe", changes));
    });
  };
  refused({"n_group is 3", "4 experts"}, {{"n_group", 3}});
  refused({"topk_group is 3", "n_group 2"}, {{"topk_group", 3}});
  refused({"topk_group 1", "n_group 4", "2"}, {{"n_group", 4}});
  refused({"num_experts_per_tok is 7", "n_routed_experts 4"}, {{"num_experts_per_tok", 7}});
}

TEST(MoeConfigs, DenseLayersComeFirst) {
  const auto layers = [](const Json& changes) {
    return expert_layers(glm4_moe().read(config_with("glm4_moe", changes)));
  };
  EXPECT_THAT(layers(Json::object()), ElementsAre(false, true, true, true));
  EXPECT_THAT(layers({{"first_k_dense_replace", 3}}), ElementsAre(false, false, false, true));
  EXPECT_THAT(layers({{"first_k_dense_replace", 0}}), ElementsAre(true, true, true, true));
}

TEST(MoeConfigs, ErnieHasExpertsBetweenTwoLayers) {
  const auto layers = [](const Json& changes) {
    return expert_layers(ernie4_5_moe().read(config_with("ernie4_5_moe", changes)));
  };
  EXPECT_THAT(layers(Json::object()), ElementsAre(false, true, true, true));
  EXPECT_THAT(layers({{"moe_layer_end_index", 2}}), ElementsAre(false, true, true, false));
  EXPECT_THAT(layers({{"moe_layer_interval", 2}}), ElementsAre(false, true, false, true));
}

TEST(MoeConfigs, CohereHasDenseLayersFirst) {
  const auto read = [](const Json& changes) {
    return cohere2_moe().read(config_with("cohere2_moe", changes));
  };
  const auto config = read({{"first_k_dense_replace", 1}, {"sliding_window", 9}});
  EXPECT_THAT(expert_layers(config), ElementsAre(false, true, true, true));
  EXPECT_THAT(windows(config), ElementsAre(0, 9, 9, 9));
  const std::vector<std::string> types{"sparse", "dense", "sparse", "sparse"};
  expect_error(ErrorCode::kUnsupported, {"mlp_layer_types", "dense"}, [&] {
    read({{"mlp_layer_types", types}});
  });
  expect_error(ErrorCode::kCorruptData, {"mlp_layer_types", "1 entries"}, [&] {
    read({{"mlp_layer_types", Json::array({"dense"})}});
  });
  expect_error(ErrorCode::kUnsupported, {"expert_selection_fn", "best"}, [&] {
    read({{"expert_selection_fn", "best"}});
  });
  expect_error(ErrorCode::kUnsupported, {"shared_expert_combination_strategy", "max"}, [&] {
    read({{"shared_expert_combination_strategy", "max"}});
  });
}

TEST(MoeConfigs, HunyuansNumbersAreOnePerModel) {
  const auto read = hunyuan_v1_moe().read;
  const Json equal{{"moe_topk", Json::array({2, 2, 2, 2})}};
  EXPECT_EQ(read(config_with("hunyuan_v1_moe", equal)).moe.routing.chosen, 2);
  expect_error(ErrorCode::kUnsupported, {"moe_topk", "1 beside 2"}, [&] {
    read(config_with("hunyuan_v1_moe", {{"moe_topk", Json::array({2, 1})}}));
  });
}

TEST(MoeConfigs, RefusesWhatCannotRun) {
  expect_error(ErrorCode::kUnsupported, {"clip_qkv is 8"}, [] {
    check_config(config_with("olmoe", {{"clip_qkv", 8}}));
  });
  expect_error(ErrorCode::kCorruptData, {"rotary_dim", "9"}, [] {
    check_config(config_with("minimax_m2", {{"rotary_dim", 9}}));
  });
}

TEST(MoeConfigs, TensorsBehindTheLastLayerAreNotRead) {
  const Json config{{"num_hidden_layers", 3}};
  EXPECT_TRUE(is_behind_layers("model.layers.3.eh_proj.weight", config));
  EXPECT_FALSE(is_behind_layers("model.layers.2.mlp.gate.weight", config));
  EXPECT_FALSE(is_behind_layers("layers.2.mlp.gate.weight", config));
  EXPECT_TRUE(is_behind_layers("layers.12.mlp.gate.weight", config));
  EXPECT_FALSE(is_behind_layers("model.layers.x.weight", config));
  EXPECT_FALSE(is_behind_layers("model.layers.3.weight", Json::object()));
  EXPECT_TRUE(is_behind_layers("model.layers.3.weight", {{"text_config", config}}));
}

}  // namespace
}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
// Configurations of dense architectures that differ in norms, ropes and factors.
#include "saker/models/architecture.h"
#include "saker/models/decoder_config.h"

#include "tests/models/changed_config.h"
#include "tests/models/random_model.h"
#include "tests/support/expect_error.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace saker::models {
namespace {

using ::testing::ElementsAre;
using testing::expect_error;

std::vector<bool> rotating_layers(const DecoderConfig& config) {
  std::vector<bool> result;
  result.reserve(config.layers.size());
  for (const auto& layer : config.layers) {
    result.push_back(config.ropes.at(layer.rope).kind != nn::RopeKind::kNone);
  }
  return result;
}

TEST(DenseConfig, SmolLm3HasLayersWithoutRope) {
  const auto rotating = [](const Json& changes) {
    return rotating_layers(smollm3().read(config_with("smollm3", changes)));
  };
  EXPECT_THAT(rotating(Json::object()), ElementsAre(true, true, true, false));
  EXPECT_THAT(rotating({{"no_rope_layer_interval", 2}}), ElementsAre(true, false, true, false));
  const Json list{{"no_rope_layers", Json::array({0, 1, 1, 0})}};
  EXPECT_THAT(rotating(list), ElementsAre(false, true, true, false));
  const Json sliding{{"sliding_window", 7}, {"use_sliding_window", true}};
  EXPECT_THAT(windows(smollm3().read(config_with("smollm3", sliding))), ElementsAre(0, 0, 0, 7));
  const std::vector<Json> bad{
      3, Json::array({1, 1, 1}), Json::array({1, 1, 1, 2}), Json::array({1, 1, 1, "1"})
  };
  for (const Json& value : bad) {
    expect_error(ErrorCode::kCorruptData, {"no_rope_layers"}, [&] {
      check_config(config_with("smollm3", {{"no_rope_layers", value}}));
    });
  }
  for (const Json& value : {Json(0), Json(-1), Json(1e300), Json("4")}) {
    expect_error(ErrorCode::kCorruptData, {"no_rope_layer_interval"}, [&] {
      check_config(config_with("smollm3", {{"no_rope_layer_interval", value}}));
    });
  }
}

TEST(DenseConfig, GraniteHasFourFactors) {
  const auto config = granite().read(config_with("granite", Json::object()));
  EXPECT_EQ(config.embedding_scale, 3.0F);
  EXPECT_EQ(config.attention_scale, 0.3F);
  EXPECT_EQ(config.residual_scale, 0.5F);
  EXPECT_EQ(config.logit_scale, 0.5F);
  for (const auto* key :
       {"embedding_multiplier", "attention_multiplier", "residual_multiplier", "logits_scaling"}) {
    for (const Json& value : {Json(0), Json(-1), Json(1e300), Json("2")}) {
      expect_error(ErrorCode::kCorruptData, {key}, [&] {
        check_config(config_with("granite", {{key, value}}));
      });
    }
  }
}

// Errors of one changed field, which is named.
void expect_refused(
    ErrorCode code, const char* model_type, const char* key, const std::vector<Json>& values
) {
  for (const Json& value : values) {
    expect_error(code, {key}, [&] { check_config(config_with(model_type, {{key, value}})); });
  }
}

TEST(DenseConfig, GptOssSlidesInEverySecondLayer) {
  const auto read = [](const Json& changes) {
    return gpt_oss().read(config_with("gpt_oss", changes));
  };
  const auto config = read(Json::object());
  EXPECT_THAT(windows(config), ElementsAre(128, 0, 128, 0));
  EXPECT_TRUE(config.attention_sinks);
  EXPECT_EQ(config.moe.experts, 4);
  const nn::RopeOptions& rope = config.ropes.front();
  EXPECT_EQ(rope.kind, nn::RopeKind::kYarn);
  EXPECT_EQ(rope.factor, 32.0);
  EXPECT_EQ(rope.theta, 150000.0);
  EXPECT_FALSE(rope.truncate);
  const Json given{{"rope_scaling", {{"rope_type", "default"}}}, {"sliding_window", 7}};
  EXPECT_EQ(read(given).ropes.front().kind, nn::RopeKind::kDefault);
  EXPECT_THAT(windows(read(given)), ElementsAre(7, 0, 7, 0));
  const Json written{
      {"rope_scaling",
       {{"rope_type", "yarn"},
        {"factor", 32.0},
        {"original_max_position_embeddings", 4096},
        {"truncate", false}}},
      {"rope_theta", 150000}
  };
  EXPECT_DOUBLE_EQ(read(written).ropes.front().attention_factor, rope.attention_factor);
}

TEST(DenseConfig, GptOssNamesBadValues) {
  constexpr auto kCorrupt = ErrorCode::kCorruptData;
  const std::vector<Json> sizes{0, -1, 1e300, "4", 1.5, Json::array()};
  expect_refused(kCorrupt, "gpt_oss", "num_local_experts", sizes);
  expect_refused(kCorrupt, "gpt_oss", "num_experts_per_tok", sizes);
  expect_refused(kCorrupt, "gpt_oss", "num_experts_per_tok", {5});
  expect_refused(kCorrupt, "gpt_oss", "sliding_window", {0, -1, "x", nullptr});
  for (const auto* key : {"swiglu_limit", "swiglu_alpha"}) {
    expect_refused(kCorrupt, "gpt_oss", key, {0, -1, 1e300, "7", Json::object()});
    expect_refused(ErrorCode::kUnsupported, "gpt_oss", key, {6.5});
  }
}

TEST(DenseConfig, Gemma4NamesBadExperts) {
  const Json experts{
      {"enable_moe_block", true},
      {"num_experts", 5},
      {"top_k_experts", 2},
      {"moe_intermediate_size", 24},
  };
  const auto config = gemma4().read(config_with("gemma4_text", experts));
  EXPECT_TRUE(config.mlp_beside_experts);
  EXPECT_EQ(config.moe.experts, 5);
  EXPECT_EQ(config.moe.routing.chosen, 2);
  EXPECT_EQ(config.moe.intermediate, 24);
  EXPECT_FALSE(gemma4().read(config_with("gemma4_text", Json::object())).mlp_beside_experts);
  for (const auto* key : {"num_experts", "top_k_experts", "moe_intermediate_size"}) {
    for (const Json& value : {Json(0), Json(-1), Json(1e300), Json("4"), Json(nullptr)}) {
      Json changes = experts;
      changes[key] = value;
      expect_error(ErrorCode::kCorruptData, {key}, [&] {
        check_config(config_with("gemma4_text", changes));
      });
    }
  }
  Json many = experts;
  many["top_k_experts"] = 6;
  expect_error(ErrorCode::kCorruptData, {"top_k_experts"}, [&] {
    check_config(config_with("gemma4_text", many));
  });
}

TEST(DenseConfig, Olmo3ScalesTheRopeOfFullLayers) {
  const Json yarn{{"rope_type", "yarn"}, {"factor", 4.0}};
  const auto config = olmo3().read(
      config_with("olmo3", {{"rope_scaling", yarn}, {"rope_theta", 300.0}, {"sliding_window", 7}})
  );
  EXPECT_THAT(windows(config), ElementsAre(7, 7, 7, 0));
  EXPECT_EQ(config.ropes.at(config.layers[0].rope).kind, nn::RopeKind::kDefault);
  EXPECT_EQ(config.ropes.at(config.layers[0].rope).theta, 300.0);
  EXPECT_EQ(config.ropes.at(config.layers[3].rope).kind, nn::RopeKind::kYarn);
}

TEST(DenseConfig, Phi3sOldRopesAreLongrope) {
  const std::vector<double> ones(4, 1.0);
  const std::vector<double> twos(4, 2.0);
  for (const auto* type : {"su", "yarn", "longrope"}) {
    const Json rope{{"type", type}, {"short_factor", ones}, {"long_factor", twos}};
    const auto factors = [&](int original) {
      const Json changes{{"rope_scaling", rope}, {"original_max_position_embeddings", original}};
      return phi3().read(config_with("phi3", changes)).ropes.front().factors;
    };
    EXPECT_EQ(factors(64), twos) << type;  // The context is 256.
    EXPECT_EQ(factors(256), ones) << type;
  }
  const Json three{{"type", "longrope"}, {"short_factor", ones}, {"long_factor", {1.0, 1.0, 1.0}}};
  expect_error(ErrorCode::kCorruptData, {"rope", "3", "4"}, [&] {
    check_config(
        config_with("phi3", {{"rope_scaling", three}, {"original_max_position_embeddings", 64}})
    );
  });
}

TEST(DenseConfig, Phi3sWindowAsWideAsTheContextIsNone) {
  const auto read = phi3().read;
  EXPECT_THAT(windows(read(config_with("phi3", {{"sliding_window", 7}}))), ElementsAre(7, 7, 7, 7));
  EXPECT_THAT(
      windows(read(config_with("phi3", {{"sliding_window", 256}}))), ElementsAre(0, 0, 0, 0)
  );
}

TEST(DenseConfig, Ministral3ScalesQueries) {
  const auto rope = [](const Json& beta, const Json& original) {
    return config_with(
        "ministral3",
        {{"rope_parameters",
          {{"rope_type", "yarn"},
           {"factor", 4.0},
           {"original_max_position_embeddings", original},
           {"llama_4_scaling_beta", beta}}}}
    );
  };
  const auto config = ministral3().read(rope(0.25, 16));
  EXPECT_EQ(config.query_scaling.beta, 0.25);
  EXPECT_EQ(config.query_scaling.period, 16);
  EXPECT_EQ(ministral3().read(rope(nullptr, 16)).query_scaling.beta, 0.0);
  for (const Json& beta : {Json(-1), Json(1e300), Json("0.1")}) {
    expect_error(ErrorCode::kCorruptData, {"llama_4_scaling_beta"}, [&] {
      check_config(rope(beta, 16));
    });
  }
  expect_error(ErrorCode::kCorruptData, {"original_max_position_embeddings"}, [&] {
    check_config(rope(0.25, 0.5));
  });
}

TEST(DenseConfig, Cohere2sFullLayersDoNotRotate) {
  const auto config = cohere2().read(config_with("cohere2", {{"sliding_window", 7}}));
  EXPECT_THAT(windows(config), ElementsAre(7, 7, 7, 0));
  EXPECT_THAT(rotating_layers(config), ElementsAre(true, true, true, false));
  EXPECT_EQ(config.ropes.front().pairs, kernels::RopePairs::kNeighbours);
  EXPECT_EQ(config.norm.kind, kernels::NormKind::kLayer);
  EXPECT_EQ(config.logit_scale, 0.0625F);
  expect_error(ErrorCode::kUnsupported, {"use_qk_norm"}, [] {
    check_config(config_with("cohere2", {{"use_qk_norm", true}}));
  });
  for (const auto* key : {"logit_scale", "sliding_window_pattern", "sliding_window"}) {
    expect_error(ErrorCode::kCorruptData, {key}, [&] {
      check_config(config_with("cohere2", {{key, -1}}));
    });
  }
}

TEST(DenseConfig, Exaone4SlidesByPattern) {
  const auto read = [](const Json& changes) {
    return exaone4().read(config_with("exaone4", changes));
  };
  const auto letters = read({{"sliding_window", 7}, {"sliding_window_pattern", "LG"}});
  EXPECT_THAT(windows(letters), ElementsAre(7, 0, 7, 0));
  EXPECT_THAT(rotating_layers(letters), ElementsAre(true, false, true, false));
  const auto number = read({{"sliding_window", 7}, {"sliding_window_pattern", 3}});
  EXPECT_THAT(windows(number), ElementsAre(7, 7, 0, 7));
  const auto full = read({{"sliding_window", nullptr}});
  EXPECT_THAT(windows(full), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(rotating_layers(full), ElementsAre(true, true, true, true));
  for (const Json& value : {Json(""), Json("LX"), Json(0), Json(Json::array())}) {
    expect_error(ErrorCode::kCorruptData, {"sliding_window_pattern"}, [&] {
      check_config(config_with("exaone4", {{"sliding_window_pattern", value}}));
    });
  }
}

}  // namespace
}  // namespace saker::models

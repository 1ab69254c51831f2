// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/rope.h"

#include "tests/support/expect_error.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace saker::nn {
namespace {

using testing::expect_error;

RopeOptions options_of(std::string_view json, const RopeKeys& keys = {}) {
  return read_rope_options(parse_json(json, "test"), keys);
}

void expect_frequencies(std::string_view json, const std::vector<double>& expected) {
  const Rope rope(static_cast<int>(expected.size()) * 2, options_of(json));
  ASSERT_EQ(rope.frequencies().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(rope.frequencies()[i], expected[i], 1e-6 * expected[i]) << i;
  }
}

TEST(Rope, DefaultFrequencies) {
  expect_frequencies("{}", {1.0, 0.1, 0.01, 0.001});
  expect_frequencies(R"({"rope_theta": 16.0})", {1.0, 0.5, 0.25, 0.125});
}

TEST(Rope, LinearDividesFrequencies) {
  expect_frequencies(
      R"({"rope_scaling": {"type": "linear", "factor": 4}})", {0.25, 0.025, 0.0025, 0.00025}
  );
}

// Numbers of the reference implementation, float32.
TEST(Rope, Llama3Frequencies) {
  expect_frequencies(
      R"({"rope_theta": 500000, "rope_scaling": {"rope_type": "llama3", "factor": 32,
          "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 8192}})",
      {1,
       0.19392276,
       0.037606031,
       0.0072926651,
       0.00042955671,
       8.5702559e-06,
       1.6619674e-06,
       3.2229329e-07}
  );
}

TEST(Rope, YarnFrequencies) {
  expect_frequencies(
      R"({"rope_theta": 10000, "rope_scaling": {"rope_type": "yarn", "factor": 4,
          "original_max_position_embeddings": 64}})",
      {1,
       0.23717082,
       0.049999997,
       0.0079056947,
       0.0024999999,
       0.00079056947,
       0.00025000001,
       7.9056947e-05}
  );
  expect_frequencies(
      R"({"rope_theta": 10000, "rope_scaling": {"rope_type": "yarn", "factor": 4, "beta_fast": 8,
          "beta_slow": 2, "truncate": false, "original_max_position_embeddings": 64}})",
      {1, 0.16058916, 0.025, 0.0079056947, 0.0024999999, 0.00079056947, 0.00025000001, 7.9056947e-05
      }
  );
}

TEST(Rope, YarnScalesCosAndSin) {
  const auto factor = [](const std::string& more) {
    return options_of(R"({"rope_scaling": {"rope_type": "yarn", "factor": 4)" + more + "}}")
        .attention_factor;
  };
  EXPECT_NEAR(factor(""), 0.1 * std::log(4.0) + 1.0, 1e-12);
  EXPECT_NEAR(factor(R"(, "attention_factor": 0.5)"), 0.5, 1e-12);
  EXPECT_NEAR(factor(R"(, "mscale": 1.0, "mscale_all_dim": 1.0)"), 1.0, 1e-12);
  EXPECT_NEAR(
      factor(R"(, "mscale": 0.7, "mscale_all_dim": 1.0)"),
      (0.07 * std::log(4.0) + 1.0) / (0.1 * std::log(4.0) + 1.0),
      1e-12
  );
  // Without its partner, mscale means nothing.
  EXPECT_NEAR(factor(R"(, "mscale": 0.7)"), 0.1 * std::log(4.0) + 1.0, 1e-12);
}

// Pairs are those of the whole head, of which the last ones stand still.
TEST(Rope, ProportionalRotatesAPartOfThePairs) {
  const auto options = options_of(R"({"rope_parameters": {"rope_type": "proportional", "factor": 2,
      "rope_theta": 10000, "partial_rotary_factor": 0.5}})");
  const Rope rope(8, options);
  ASSERT_EQ(rope.frequencies().size(), 4U);
  const std::vector<double> expected{0.5, 0.05, 0.0, 0.0};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(rope.frequencies()[i], expected[i], 1e-12) << i;
  }
  for (const auto* part : {"0", "-1", "1.5"}) {
    expect_error(ErrorCode::kCorruptData, {"partial_rotary_factor"}, [&] {
      options_of(fmt::format(
          R"({{"rope_parameters": {{"rope_type": "proportional", "partial_rotary_factor": {}}}}})",
          part
      ));
    });
  }
}

TEST(Rope, NoRopeTurnsNothing) {
  const Rope rope(6, {.kind = RopeKind::kNone});
  const std::vector<std::int64_t> positions{0, 7, 1'000'000};
  const auto table = rope.table(positions);
  EXPECT_TRUE(mx::array_equal(table.cos, mx::ones({3, 3})).item<bool>());
  EXPECT_TRUE(mx::array_equal(table.sin, mx::zeros({3, 3})).item<bool>());
}

TEST(Rope, TableSaysWhichElementsArePairs) {
  const std::vector<std::int64_t> positions{0};
  const auto pairs = [&](const RopeOptions& options) {
    return Rope(4, options).table(positions).pairs;
  };
  EXPECT_EQ(pairs({}), kernels::RopePairs::kHalves);
  EXPECT_EQ(pairs({.pairs = kernels::RopePairs::kNeighbours}), kernels::RopePairs::kNeighbours);
}

TEST(Rope, TableHoldsScaledCosAndSinOfPositions) {
  RopeOptions options;
  options.attention_factor = 2.0;
  const Rope rope(4, options);
  const std::vector<std::int64_t> positions{0, 7, 1'000'000};
  const auto table = rope.table(positions);
  EXPECT_EQ(table.cos.shape(), (mx::Shape{3, 2}));
  EXPECT_EQ(table.cos.dtype(), mx::float32);
  const auto at = [](const mx::array& array, int row, int column) {
    return mx::slice(array, {row, column}, {row + 1, column + 1}).item<float>();
  };
  EXPECT_EQ(at(table.cos, 0, 1), 2.0F);
  EXPECT_EQ(at(table.sin, 0, 1), 0.0F);
  EXPECT_EQ(at(table.cos, 1, 0), static_cast<float>(2.0 * std::cos(7.0)));
  EXPECT_EQ(at(table.sin, 2, 1), static_cast<float>(2.0 * std::sin(1e6 * 0.01)));
}

TEST(RopeOptions, BothSpellingsMeanTheSame) {
  const auto old =
      options_of(R"({"rope_theta": 5000, "rope_scaling": {"type": "linear", "factor": 2}})");
  const auto fresh =
      options_of(R"({"rope_parameters": {"rope_type": "linear", "factor": 2, "rope_theta": 5000}})"
      );
  EXPECT_EQ(old.kind, RopeKind::kLinear);
  EXPECT_EQ(fresh.kind, RopeKind::kLinear);
  EXPECT_EQ(old.theta, 5000.0);
  EXPECT_EQ(fresh.theta, 5000.0);
  EXPECT_EQ(old.factor, fresh.factor);
}

TEST(RopeOptions, ThetaStaysWhereScalingIsAddedBesideParameters) {
  const auto options =
      options_of(R"({"rope_parameters": {"rope_type": "default", "rope_theta": 1e6},
      "rope_scaling": {"rope_type": "linear", "factor": 4}})");
  EXPECT_EQ(options.kind, RopeKind::kLinear);
  EXPECT_EQ(options.factor, 4.0);
  EXPECT_EQ(options.theta, 1e6);
}

TEST(RopeOptions, LayerTypesHaveTheirOwn) {
  constexpr std::string_view kJson = R"({"rope_parameters": {
      "full_attention": {"rope_type": "linear", "factor": 8, "rope_theta": 1e6},
      "sliding_attention": {"rope_type": "default", "rope_theta": 20000}}})";
  EXPECT_EQ(options_of(kJson).kind, RopeKind::kLinear);
  const auto sliding = options_of(kJson, {.layer_type = "sliding_attention", .scaled = false});
  EXPECT_EQ(sliding.kind, RopeKind::kDefault);
  EXPECT_EQ(sliding.theta, 20000.0);
  const auto unscaled = options_of(
      R"({"rope_scaling": {"type": "linear", "factor": 8}, "rope_theta": 7e5, "local": 3e4})",
      {.theta = "local", .scaled = false}
  );
  EXPECT_EQ(unscaled.kind, RopeKind::kDefault);
  EXPECT_EQ(unscaled.theta, 3e4);
}

TEST(RopeOptions, NothingMeansDefault) {
  for (const auto* json :
       {"{}",
        R"({"rope_scaling": null})",
        R"({"rope_scaling": {}})",
        R"({"rope_scaling": {"rope_type": "default"}, "rope_theta": null})"}) {
    EXPECT_EQ(options_of(json).kind, RopeKind::kDefault) << json;
    EXPECT_EQ(options_of(json).theta, 10000.0) << json;
  }
}

// Up to the model's own context, or for text, they are nothing else.
TEST(RopeOptions, KindsThatAreTheDefaultOne) {
  for (const auto* json :
       {R"({"rope_scaling": {"type": "dynamic", "factor": 2}})",
        R"({"rope_parameters": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000}})",
        R"({"rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}})",
        R"({"rope_scaling": {"rope_type": "default", "mrope_section": [16, 24, 24]}})"}) {
    EXPECT_EQ(options_of(json).kind, RopeKind::kDefault) << json;
    EXPECT_EQ(Rope(8, options_of(json)).frequencies()[1], 0.1) << json;
  }
}

TEST(RopeOptions, YarnsFactorFollowsFromTheContextWhereItIsNull) {
  const auto options = options_of(R"({"max_position_embeddings": 32768, "rope_scaling":
      {"rope_type": "yarn", "factor": null, "original_max_position_embeddings": 8192}})");
  EXPECT_EQ(options.factor, 4.0);
  EXPECT_NEAR(options.attention_factor, 0.1 * std::log(4.0) + 1.0, 1e-12);
  // The number beside the parameters counts first.
  EXPECT_EQ(
      options_of(R"({"max_position_embeddings": 32768, "original_max_position_embeddings": 4096,
          "rope_scaling": {"rope_type": "yarn", "factor": null}})")
          .factor,
      8.0
  );
}

TEST(RopeOptions, FactorsDivideFrequencies) {
  expect_frequencies(
      R"({"max_position_embeddings": 64, "rope_scaling": {"rope_type": "longrope",
          "short_factor": [1, 2, 4, 5], "long_factor": [1, 2, 4, 5]}})",
      {1.0, 0.05, 0.0025, 0.0002}
  );
  // Another list begins where no position is.
  const auto options = options_of(R"({"max_position_embeddings": 64, "rope_scaling":
      {"type": "longrope", "short_factor": [1, 2], "long_factor": [3, 4],
      "original_max_position_embeddings": 64}})");
  EXPECT_EQ(options.factors, (std::vector<double>{1.0, 2.0}));
  EXPECT_EQ(options.attention_factor, 1.0);
  EXPECT_NEAR(
      options_of(R"({"max_position_embeddings": 256, "rope_scaling": {"rope_type": "longrope",
          "short_factor": [1, 2], "long_factor": [1, 2],
          "original_max_position_embeddings": 64}})")
          .attention_factor,
      std::sqrt(1.0 + std::log(4.0) / std::log(64.0)),
      1e-12
  );
  // The context exceeds the original one, so all lengths have the long list.
  EXPECT_EQ(
      options_of(R"({"max_position_embeddings": 256, "rope_scaling": {"rope_type": "longrope",
          "short_factor": [1, 2], "long_factor": [3, 4],
          "original_max_position_embeddings": 64}})")
          .factors,
      (std::vector<double>{3.0, 4.0})
  );
  expect_error(ErrorCode::kCorruptData, {"long_factor", "missing"}, [] {
    options_of(R"({"max_position_embeddings": 256, "rope_scaling": {"rope_type": "longrope",
        "short_factor": [1, 2], "original_max_position_embeddings": 64}})");
  });
  for (const auto* list : {"null", "7", "[0, 1]", "[-1]", R"(["1"])", "[[1]]"}) {
    expect_error(ErrorCode::kCorruptData, {"short_factor"}, [&] {
      options_of(fmt::format(
          R"({{"rope_scaling": {{"rope_type": "longrope", "short_factor": {}}}}})", list
      ));
    });
  }
}

TEST(RopeOptions, OtherKindsAreNamed) {
  expect_error(ErrorCode::kUnsupported, {"rope_type", "spiral"}, [] {
    options_of(R"({"rope_scaling": {"type": "spiral", "factor": 2}})");
  });
  expect_error(ErrorCode::kUnsupported, {"rope_traditional"}, [] {
    options_of(R"({"rope_traditional": true})");
  });
  expect_error(ErrorCode::kUnsupported, {"partial_rotary_factor", "0.5"}, [] {
    options_of(R"({"partial_rotary_factor": 0.5})");
  });
}

TEST(RopeOptions, ValuesOutOfRangeAreNamed) {
  const auto refused = [](std::string_view word, std::string_view json) {
    expect_error(ErrorCode::kCorruptData, {word}, [&] { options_of(json); });
  };
  refused("rope_theta", R"({"rope_theta": -1})");
  refused("rope_theta", R"({"rope_theta": "big"})");
  refused("factor", R"({"rope_scaling": {"type": "linear"}})");
  refused("factor", R"({"rope_scaling": {"type": "linear", "factor": 0}})");
  refused("rope_scaling", R"({"rope_scaling": "linear"})");
  refused("rope_type", R"({"rope_scaling": {"rope_type": 3}})");
  refused("beta_slow", R"({"rope_scaling": {"rope_type": "yarn", "factor": 2, "beta_slow": -1}})");
  refused("high_freq_factor", R"({"rope_scaling": {"rope_type": "llama3", "factor": 2,
      "low_freq_factor": 4, "high_freq_factor": 4}})");
}

}  // namespace
}  // namespace saker::nn

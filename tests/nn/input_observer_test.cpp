// SPDX-License-Identifier: Apache-2.0
// Layers hand their inputs to an observer, and give the same bits as without one.
#include "saker/nn/input_observer.h"

#include "saker/kernels/ops/linear.h"
#include "saker/nn/gated_mlp.h"
#include "saker/nn/moe.h"

#include "tests/nn/random_weights.h"
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace saker::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

struct SeenInput {
  mx::array rows;
  std::optional<mx::array> experts;
  int expert_count = 1;
};

class Spy final : public InputObserver {
 public:
  void observe(const LinearInput& input) override {
    order.push_back(std::string(input.modules.front()));
    for (const auto module : input.modules) {
      seen.emplace(
          module,
          SeenInput{
              input.rows,
              input.experts == nullptr ? std::nullopt : std::optional(*input.experts),
              input.expert_count
          }
      );
    }
  }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const auto& [name, input] : seen) {
      result.push_back(name);
    }
    return result;
  }

  std::map<std::string, SeenInput> seen;
  std::vector<std::string> order;
};

constexpr kernels::WeightFormat kFloat{.kind = kernels::WeightKind::kFloat32};
constexpr kernels::WeightFormat kAffine{
    .kind = kernels::WeightKind::kAffine, .bits = 4, .group_size = 32
};

mx::array normal_rows(int rows, int columns) {
  return mx::random::normal({rows, columns}, mx::float32, mx::random::key(5));
}

bool same_rows(const mx::array& a, const mx::array& b) {
  return mx::array_equal(a, b).item<bool>();
}

class ObservedLayers : public ::testing::TestWithParam<kernels::WeightFormat> {};

TEST_P(ObservedLayers, MlpHandsOutBothInputs) {
  RandomWeights random(GetParam(), 1);
  random.add_linear("mlp.gate_proj", 64, 32);
  random.add_linear("mlp.up_proj", 64, 32);
  random.add_linear("mlp.down_proj", 32, 64);
  const Weights weights(random.tensors(), {});
  const GatedMlp mlp(weights / "mlp", {.hidden = 32, .intermediate = 64});
  const Linear down(weights / "mlp" / "down_proj", 64, 32);
  for (const int rows : {1, 9, 200}) {  // The last is a prefill whose activations are not stored.
    Spy spy;
    const auto x = normal_rows(rows, 32);
    const auto plain = mlp(x, {});
    const auto observed = mlp(x, RowContext().observed_by(spy));
    EXPECT_TRUE(same_rows(plain, observed));
    EXPECT_THAT(spy.order, ElementsAre("mlp.gate_proj", "mlp.down_proj"));
    EXPECT_THAT(spy.names(), UnorderedElementsAre("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"));
    EXPECT_TRUE(same_rows(spy.seen.at("mlp.up_proj").rows, x));
    // The last product of what was seen is the layer's output.
    EXPECT_TRUE(same_rows(down(spy.seen.at("mlp.down_proj").rows, {}), plain));
    EXPECT_FALSE(spy.seen.at("mlp.down_proj").experts);
  }
}

TEST_P(ObservedLayers, ExpertsHandOutRowsByExpert) {
  constexpr int kExperts = 3;
  RandomWeights random(GetParam(), 2);
  random.add_linear("mlp.gate", kExperts, 32);
  for (int expert = 0; expert < kExperts; ++expert) {
    const auto scope = fmt::format("mlp.experts.{}.", expert);
    random.add_linear(scope + "gate_proj", 64, 32);
    random.add_linear(scope + "up_proj", 64, 32);
    random.add_linear(scope + "down_proj", 32, 64);
  }
  const MoeOptions options{
      .hidden = 32, .intermediate = 64, .experts = kExperts, .routing = {.chosen = 2}
  };
  const Moe moe(Weights(random.tensors(), {}) / "mlp", options);
  Spy spy;
  const auto x = normal_rows(7, 32);
  EXPECT_TRUE(same_rows(moe(x, {}), moe(x, RowContext().observed_by(spy))));
  EXPECT_THAT(
      spy.names(),
      UnorderedElementsAre(
          "mlp.gate",
          "mlp.switch_mlp.gate_proj",
          "mlp.switch_mlp.up_proj",
          "mlp.switch_mlp.down_proj"
      )
  );
  EXPECT_TRUE(same_rows(spy.seen.at("mlp.gate").rows, x));
  const SeenInput& gate = spy.seen.at("mlp.switch_mlp.gate_proj");
  const SeenInput& down = spy.seen.at("mlp.switch_mlp.down_proj");
  EXPECT_EQ(gate.expert_count, kExperts);
  EXPECT_EQ(gate.rows.shape(), (mx::Shape{14, 32}));
  EXPECT_EQ(down.rows.shape(), (mx::Shape{14, 64}));
  EXPECT_TRUE(same_rows(*gate.experts, *down.experts));
  const Linear router =
      Linear::in_float32(Weights(random.tensors(), {}) / "mlp" / "gate", options.hidden, kExperts);
  const auto choice = kernels::choose_experts(router(x, {}), options.routing);
  const auto sorted = kernels::sort_by_expert(choice.ids, kExperts);
  EXPECT_TRUE(same_rows(*gate.experts, sorted.experts));
  EXPECT_TRUE(same_rows(gate.rows, kernels::gather_rows(x, sorted)));
}

INSTANTIATE_TEST_SUITE_P(Formats, ObservedLayers, ::testing::Values(kFloat, kAffine));

TEST(ObservedRows, SelectedRowsAreNotObserved) {
  Spy spy;
  const RowContext observed = RowContext().observed_by(spy);
  EXPECT_TRUE(observed.is_observed());
  EXPECT_FALSE(RowContext().is_observed());
  const std::vector<int> rows = {0};
  EXPECT_FALSE(observed.select(rows).is_observed());
}

}  // namespace
}  // namespace saker::nn

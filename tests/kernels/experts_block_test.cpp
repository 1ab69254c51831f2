// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/experts/experts_block.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/random_weights.h"
#include "tests/kernels/rows.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

constexpr int kHidden = 256;
constexpr int kWide = 256;
constexpr WeightFormat kFloats{.kind = WeightKind::kFloat32};
constexpr std::array kScores{
    RouterScore::kSoftmax,
    RouterScore::kSoftmaxOfChosen,
    RouterScore::kSigmoid,
    RouterScore::kSqrtSoftplus,
};
constexpr WeightFormat kFourBits{.kind = WeightKind::kAffine, .bits = 4, .group_size = 32};

// Experts with parts in these formats, expert e those from number e on.
std::vector<std::vector<ExpertPart>> random_parts(
    const std::vector<WeightFormat>& formats,
    int experts,
    const std::vector<int>& rows,
    int columns,
    std::uint64_t seed
) {
  std::vector<std::vector<ExpertPart>> result(static_cast<std::size_t>(experts));
  std::size_t next = 0;
  for (auto& parts : result) {
    std::size_t format = next++;
    for (const int part_rows : rows) {
      const WeightFormat& of = formats[format++ % formats.size()];
      // Seeds 3 apart, so that the scales are of one dtype.
      seed += 3;
      parts.push_back({{random_weight(of, part_rows, columns, seed)}, of});
    }
  }
  return result;
}

mx::array random_biases(const ExpertWeights& weights, std::uint64_t seed) {
  auto biases = mx::multiply(random_rows(weights.experts(), weights.rows(), seed), mx::array(4.0F));
  mx::eval(biases);
  return biases;
}

// A mixture: its operands, and the weights that they refer to.
struct Mixture {
  std::vector<PackedWeight> router;
  std::optional<mx::array> bias;
  ExpertsBlock block;

  // Each expert's gates and ups are one weight if `joined`, else one each.
  Mixture(
      const std::vector<WeightFormat>& formats,
      int experts,
      int chosen,
      bool joined,
      std::uint64_t seed
  )
      : router({PackedWeight::pack({random_weight(kFloats, experts, kHidden, seed)}, kFloats)}),
        block{
            {router, bias},
            {.chosen = chosen, .score = kScores[seed % kScores.size()]},
            {},
            ExpertWeights::pack(random_parts(
                formats,
                experts,
                joined ? std::vector{2 * kWide} : std::vector{kWide, kWide},
                kHidden,
                seed + 1
            )),
            seed % 3 == 0   ? Activation::kGeluTanh
            : seed % 3 == 1 ? Activation::kSwigluOai
                            : Activation::kSilu,
            ExpertWeights::pack(random_parts(formats, experts, {kHidden}, kWide, seed + 2)),
        } {
    if (seed % 2 == 1) {
      block.gate_up = block.gate_up.with_biases(random_biases(block.gate_up, seed));
      block.down = block.down.with_biases(random_biases(block.down, seed + 1));
    }
  }

  Mixture(const Mixture&) = delete;
  Mixture& operator=(const Mixture&) = delete;

  // The composition that the block stands for.
  mx::array apart(const mx::array& x) const {
    const auto choice = choose_experts(
        linear(block.router_rows.value_or(x), block.router), block.routing, block.router_tensors
    );
    const auto sorted = sort_by_expert(choice.ids, block.gate_up.experts());
    const auto merged = expert_linear(gather_rows(x, sorted), sorted, block.gate_up);
    const auto activated = merged.shape(1) == kWide ? activation(merged, block.activation)
                                                    : gated_activation(merged, block.activation);
    const auto fed = expert_linear(activated, sorted, block.down);
    return combine_experts(fed, sorted, choice.weights);
  }
};

// A shared expert: its operands, and the weights that they refer to.
struct Shared {
  std::vector<PackedWeight> gate_up;
  std::vector<PackedWeight> down;
  std::vector<PackedWeight> share;
  std::optional<mx::array> gate_up_bias;
  std::optional<mx::array> down_bias;
  std::optional<mx::array> share_bias;
  bool is_averaged;

  // Gates and ups are one weight in the first format, or one each in the first two. `rows` of gates
  // and ups: 2 * width, or width without gates.
  Shared(const std::vector<WeightFormat>& formats, int width, int rows, std::uint64_t seed)
      : down({packed(formats.back(), kHidden, width, seed + 1)}), is_averaged(seed % 5 == 0) {
    if (formats.size() > 1 && rows > width) {
      gate_up = {
          packed(formats[0], width, kHidden, seed), packed(formats[1], width, kHidden, seed)
      };
    } else {
      gate_up = {packed(formats[0], rows, kHidden, seed)};
    }
    if (seed % 2 == 0) {
      share = {packed(kFloats, 1, kHidden, seed + 2)};
    }
    if (seed % 3 == 0) {
      gate_up_bias = mx::flatten(random_rows(1, rows, seed));
      down_bias = mx::flatten(random_rows(1, kHidden, seed));
      share_bias = mx::flatten(random_rows(1, 1, seed));
    }
  }

  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  static PackedWeight packed(
      const WeightFormat& format, int rows, int columns, std::uint64_t seed
  ) {
    return PackedWeight::pack({random_weight(format, rows, columns, seed)}, format);
  }

  SharedExpert operands() const {
    return {
        {gate_up, gate_up_bias},
        {down, down_bias},
        share.empty() ? std::nullopt : std::optional(Projection{share, share_bias}),
        is_averaged,
    };
  }

  // A mixture's result with this expert's.
  mx::array added_to(const mx::array& routed, const mx::array& x, Activation activation) const {
    const SharedExpert all = operands();
    const auto merged = linear(x, all.gate_up);
    const auto activated = merged.shape(1) == down.front().columns()
                               ? kernels::activation(merged, activation)
                               : gated_activation(merged, activation);
    auto result = linear(activated, all.down);
    if (all.share) {
      const auto factor = kernels::activation(linear(x, *all.share), Activation::kLogistic);
      result = mx::multiply(result, factor);
    }
    const auto sum = mx::add(routed, result);
    return is_averaged ? mx::multiply(sum, mx::array(0.5F)) : sum;
  }
};

NextNorm random_next(int rows, std::uint64_t seed) {
  return {
      .stream = random_rows(rows, kHidden, seed),
      .norm = {.weight = mx::random::normal({kHidden}, mx::float32, mx::random::key(seed + 1))},
      .scales = {.sum = 0.75F},
  };
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class ExpertsBlockTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    ExpertsBlockTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

TEST_P(ExpertsBlockTest, GivesTheBitsOfItsParts) {
  for (const auto& format : all_formats()) {
    const Mixture mixture({format}, 5, 2, true, 4);
    for (const int rows : {1, 3, 40}) {
      const auto x = random_rows(rows, kHidden, 6);
      ASSERT_TRUE(runs_experts_block(x, mixture.block));
      EXPECT_TRUE(same_bits(to_vector(experts_block(x, mixture.block)), to_vector(mixture.apart(x)))
      ) << format_name(format)
        << ' ' << rows;
    }
  }
}

TEST_P(ExpertsBlockTest, TheRouterMayReadOtherRows) {
  Mixture mixture({kFourBits}, 6, 2, true, 4);
  const auto x = random_rows(5, kHidden, 6);
  const auto same_rows = to_vector(experts_block(x, mixture.block));
  mixture.block.router_rows = random_rows(5, kHidden, 7);
  const auto got = to_vector(experts_block(x, mixture.block));
  EXPECT_TRUE(same_bits(got, to_vector(mixture.apart(x))));
  EXPECT_FALSE(same_bits(got, same_rows));
  mixture.block.router_rows = random_rows(4, kHidden, 7);
  EXPECT_THROW(experts_block(x, mixture.block), Error);
}

TEST_P(ExpertsBlockTest, AddsToTheStreamAndNorms) {
  for (const int rows : {1, 9}) {
    const Mixture mixture({kFourBits}, 6, 3, true, 3);
    const auto x = random_rows(rows, kHidden, 6);
    const auto next = random_next(rows, 7);
    const auto got = experts_block(x, mixture.block, next);
    const auto expected = add_and_norm(mixture.apart(x), next);
    EXPECT_TRUE(same_bits(to_vector(got.sum), to_vector(expected.sum)));
    EXPECT_TRUE(same_bits(to_vector(got.normed), to_vector(expected.normed)));
  }
}

// Whatever formats the experts' parts have, and threads: a row has the bits of the row alone.
TEST_P(ExpertsBlockTest, RowsAreIndependent) {
  EXPECT_TRUE(rc::check("rows are independent", [] {
    const auto formats = *rc::gen::container<std::vector<WeightFormat>>(
        *rc::gen::inRange(1, 4), rc::gen::elementOf(all_formats())
    );
    const int experts = *rc::gen::inRange(1, 12);
    const int chosen = *rc::gen::inRange(1, experts + 1);
    const int count = *rc::gen::inRange(1, 60);
    const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
    const Mixture mixture(formats, experts, chosen, *rc::gen::arbitrary<bool>(), seed);
    const auto x = random_rows(count, kHidden, seed);
    set_threads(*rc::gen::inRange(1, 5));
    const auto together = to_vector(experts_block(x, mixture.block));
    set_threads(*rc::gen::inRange(1, 5));
    RC_ASSERT(same_bits(together, to_vector(mixture.apart(x))));
    for (int first = 0; first < count;) {
      const int part = *rc::gen::inRange(1, count - first + 1);
      const auto rows = mx::slice(x, {first, 0}, {first + part, kHidden});
      const auto alone = to_vector(experts_block(rows, mixture.block));
      const auto* expected = together.data() + static_cast<std::ptrdiff_t>(first) * kHidden;
      RC_ASSERT(std::memcmp(alone.data(), expected, alone.size() * sizeof(float)) == 0);
      first += part;
    }
  }));
}

TEST_P(ExpertsBlockTest, RunsExpertsWithoutGates) {
  Mixture mixture({kFourBits}, 5, 2, true, 3);
  mixture.block.gate_up = ExpertWeights::pack(random_parts({kFourBits}, 5, {kWide}, kHidden, 8));
  mixture.block.activation = Activation::kRelu2;
  for (const int rows : {1, 3, 40}) {
    const auto x = random_rows(rows, kHidden, 6);
    ASSERT_TRUE(runs_experts_block(x, mixture.block));
    EXPECT_TRUE(same_bits(to_vector(experts_block(x, mixture.block)), to_vector(mixture.apart(x))));
  }
}

// The shared expert's products join the mixture's where rows are few, and run before them where
// they are many.
TEST_P(ExpertsBlockTest, ASharedExpertJoins) {
  EXPECT_TRUE(rc::check("a shared expert joins", [] {
    const auto formats = *rc::gen::container<std::vector<WeightFormat>>(
        *rc::gen::inRange(1, 4), rc::gen::elementOf(all_formats())
    );
    const int experts = *rc::gen::inRange(1, 8);
    const int count = *rc::gen::inRange(1, 60);
    const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
    Mixture mixture(formats, experts, *rc::gen::inRange(1, experts + 1), true, seed);
    const int width = *rc::gen::element(256, 512);
    const Shared shared(formats, width, 2 * width, seed);
    mixture.block.shared.emplace(shared.operands());
    const auto x = random_rows(count, kHidden, seed);
    set_threads(*rc::gen::inRange(1, 5));
    RC_ASSERT(runs_experts_block(x, mixture.block));
    const auto together = to_vector(experts_block(x, mixture.block));
    const auto apart = shared.added_to(mixture.apart(x), x, mixture.block.activation);
    RC_ASSERT(same_bits(together, to_vector(apart)));
    const int row = *rc::gen::inRange(0, count);
    const auto alone = experts_block(mx::slice(x, {row, 0}, {row + 1, kHidden}), mixture.block);
    const auto* expected = together.data() + static_cast<std::ptrdiff_t>(row) * kHidden;
    RC_ASSERT(std::memcmp(to_vector(alone).data(), expected, kHidden * sizeof(float)) == 0);
  }));
}

TEST_P(ExpertsBlockTest, ASharedExpertMayHaveNoGates) {
  Mixture mixture({kFourBits}, 5, 2, true, 3);
  mixture.block.gate_up = ExpertWeights::pack(random_parts({kFourBits}, 5, {kWide}, kHidden, 8));
  mixture.block.activation = Activation::kRelu2;
  const Shared shared({kFourBits}, 512, 512, 2);
  mixture.block.shared.emplace(shared.operands());
  for (const int rows : {1, 3, 40}) {
    const auto x = random_rows(rows, kHidden, 6);
    ASSERT_TRUE(runs_experts_block(x, mixture.block));
    const auto apart = shared.added_to(mixture.apart(x), x, Activation::kRelu2);
    EXPECT_TRUE(same_bits(to_vector(experts_block(x, mixture.block)), to_vector(apart)));
  }
}

TEST_P(ExpertsBlockTest, FollowsTheRoutersRules) {
  Mixture mixture({kFourBits}, 6, 2, true, 1);
  const auto x = random_rows(9, kHidden, 6);
  const auto plain = to_vector(experts_block(x, mixture.block));
  const auto values = to_vector(random_rows(1, 6, 4));
  mixture.block.routing.groups = 3;
  mixture.block.routing.kept_groups = 2;
  mixture.block.routing.scale = 2.0F;
  mixture.block.router_tensors = {
      .bias = mx::array(values.begin(), {6}), .scales = mx::array(values.begin(), {6})
  };
  const auto got = to_vector(experts_block(x, mixture.block));
  EXPECT_FALSE(same_bits(got, plain));
  EXPECT_TRUE(same_bits(got, to_vector(mixture.apart(x))));
}

TEST(ExpertsBlock, ReadsStridedRows) {
  const Mixture mixture({kFourBits}, 4, 2, false, 1);
  const auto x = mx::transpose(random_rows(kHidden, 7, 1));
  EXPECT_EQ(
      to_vector(experts_block(x, mixture.block)),
      to_vector(experts_block(mx::contiguous(x), mixture.block))
  );
}

// A bad row spoils itself alone.
TEST(ExpertsBlock, BadRowsStayAlone) {
  const Mixture mixture({kFourBits}, 4, 2, true, 1);
  auto rows = to_vector(random_rows(5, kHidden, 1));
  const auto good = to_vector(experts_block(mx::array(rows.data(), {5, kHidden}), mixture.block));
  rows[2 * kHidden] = std::numeric_limits<float>::quiet_NaN();
  const auto got = to_vector(experts_block(mx::array(rows.data(), {5, kHidden}), mixture.block));
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (i / kHidden == 2) {
      EXPECT_TRUE(std::isnan(got[i]));
    } else {
      EXPECT_EQ(got[i], good[i]);
    }
  }
}

TEST(ExpertsBlock, RefusesWhatDoesNotFit) {
  const Mixture mixture({kFourBits}, 4, 2, true, 1);
  EXPECT_THROW(experts_block(random_rows(2, kHidden - 32, 1), mixture.block), Error);
  EXPECT_THROW(experts_block(random_rows(2, kHidden, 1), mixture.block, random_next(3, 1)), Error);
  ExpertsBlock many = mixture.block;
  many.routing.chosen = 5;
  EXPECT_THROW(experts_block(random_rows(2, kHidden, 1), many), Error);
  ExpertsBlock turned = mixture.block;
  turned.gate_up = ExpertWeights::pack(random_parts({kFourBits}, 4, {3 * kWide}, kHidden, 1));
  EXPECT_THROW(experts_block(random_rows(2, kHidden, 1), turned), Error);
}

TEST(ExpertsBlock, RefusesASharedExpertThatDoesNotFit) {
  Mixture mixture({kFourBits}, 4, 2, true, 1);
  const Shared shared({kFourBits}, 256, 384, 2);
  mixture.block.shared.emplace(shared.operands());
  EXPECT_THROW(experts_block(random_rows(2, kHidden, 1), mixture.block), Error);
}

TEST(ExpertsBlock, RunsOnlyOnTheProcessor) {
  const Mixture mixture({kFourBits}, 4, 2, true, 1);
  const auto x = random_rows(2, kHidden, 1);
  EXPECT_TRUE(runs_experts_block(x, mixture.block));
  EXPECT_FALSE(runs_experts_block(mx::astype(x, mx::bfloat16), mixture.block));
  pretend_gpu(true);
  EXPECT_FALSE(runs_experts_block(x, mixture.block));
  pretend_gpu(false);
}

}  // namespace
}  // namespace saker::kernels

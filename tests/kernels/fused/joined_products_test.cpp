// SPDX-License-Identifier: Apache-2.0

// The two halves of a decoder layer as layers write them, each of which becomes one operation.

#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/ops/activation.h"
#include "saker/kernels/ops/attend.h"
#include "saker/kernels/ops/linear.h"
#include "saker/kernels/ops/norm.h"

#include "tests/kernels/attend_runs.h"
#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/random_weights.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>
#include <mlx/primitives.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

constexpr int kHidden = 64;
constexpr int kWide = 96;
constexpr float kEps = 1e-6F;

mx::array random(const mx::Shape& shape, std::uint64_t seed) {
  auto x = mx::random::normal(shape, mx::float32, mx::random::key(seed));
  mx::eval(x);
  return x;
}

PackedWeight random_product(int rows, int columns, std::uint64_t seed) {
  const WeightFormat format{.kind = WeightKind::kAffine, .bits = 4, .group_size = 32};
  return PackedWeight::pack({random_weight(format, rows, columns, seed)}, format);
}

// Computed at once, so that nothing joins, or left to be taken over.
mx::array step(mx::array x, bool apart) {
  if (apart) {
    mx::eval(x);
  }
  return x;
}

// Whether it waits for nothing but MLX's own operations, on biases.
bool is_one_operation(const ResidualNorm& result) {
  return std::ranges::all_of(result.sum.inputs(), [](const mx::array& input) {
    return !input.has_primitive() || std::string(input.primitive().name()) == "Contiguous";
  });
}

class JoinedProductsTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    JoinedProductsTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

TEST_P(JoinedProductsTest, AnMlpGivesTheBitsOfItsParts) {
  set_threads(2);  // More rows than 8 for each: the second product makes them.
  const auto gate_up = random_product(2 * kWide, kHidden, 1);
  const auto down = random_product(kHidden, kWide, 2);
  const auto weight = random({kHidden}, 3);
  for (const bool has_bias : {false, true}) {
    const auto bias = [&](int width, std::uint64_t seed) {
      return has_bias ? std::optional(random({width}, seed)) : std::nullopt;
    };
    const auto wide_bias = bias(2 * kWide, 4);
    const auto down_bias = bias(kHidden, 5);
    for (const int rows : {1, 3, 8, 9, 13, 33, 70}) {
      const std::vector<RowRange> int8_rows(rows == 70 ? 1 : 0, RowRange{20, 30});
      const auto x = random({rows, kHidden}, 6);
      const auto sum = random({rows, kHidden}, 7);
      const auto run = [&](bool apart) {
        const auto merged = step(linear(x, gate_up, wide_bias, int8_rows), apart);
        const auto gated = step(gated_activation(merged, Activation::kSilu), apart);
        const auto fed = step(linear(gated, down, down_bias, int8_rows), apart);
        return rms_norm_residual(sum, fed, weight, kEps);
      };
      const auto apart = run(true);
      const auto together = run(false);
      EXPECT_TRUE(is_one_operation(together));
      EXPECT_EQ(floats_of(together.sum), floats_of(apart.sum)) << rows << ' ' << has_bias;
      EXPECT_EQ(floats_of(together.normed), floats_of(apart.normed)) << rows << ' ' << has_bias;
    }
  }
}

TEST_P(JoinedProductsTest, AttentionGivesTheBitsOfItsParts) {
  constexpr int kRows = 70;
  AttendCase c;
  c.kv_heads = 2;
  c.group = 2;
  const int heads = c.kv_heads * c.group;
  const auto qkv = random_product((heads + 2 * c.kv_heads) * c.head_dim, kHidden, 1);
  const auto output = random_product(kHidden, heads * c.head_dim, 2);
  const auto weight = random({kHidden}, 3);
  const auto norm = random({c.head_dim}, 4);
  const auto run = [&](bool apart, bool has_norms) {
    auto store = std::make_shared<KvStore>(c.shape(), KvLayout::kPaged);
    store->prepare(0, kRows + 1);
    std::vector<float> bits;
    // A prompt, then one token that sees what the prompt stored.
    for (const auto& [first, rows] : {std::pair(0, kRows), {kRows, 1}}) {
      const auto seed = static_cast<std::uint64_t>(first);
      MergedHeads of{
          heads,
          c.kv_heads,
          c.head_dim,
          {},
          random({rows, 8}, seed + 5),
          random({rows, 8}, seed + 6)
      };
      if (has_norms) {
        of.norms = {norm, norm, kEps};
      }
      const auto merged = step(linear(random({rows, kHidden}, seed + 7), qkv), apart);
      const std::vector<AttendSpan> spans = {span_of(c, 0, rows, first, store)};
      const auto attended = step(attend_merged(merged, of, spans, c.options), apart);
      const auto added = step(linear(attended, output), apart);
      const auto got = rms_norm_residual(random({rows, kHidden}, seed + 8), added, weight, kEps);
      EXPECT_TRUE(apart || is_one_operation(got));
      for (const auto& part : {got.sum, got.normed}) {
        const auto floats = floats_of(part);
        bits.insert(bits.end(), floats.begin(), floats.end());
      }
    }
    return bits;
  };
  for (const bool has_norms : {false, true}) {
    EXPECT_EQ(run(false, has_norms), run(true, has_norms));
  }
}

}  // namespace
}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/ops/blocks.h"

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"

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

constexpr WeightFormat kFourBits{.kind = WeightKind::kAffine, .bits = 4, .group_size = 32};

PackedWeight random_product(
    int rows, int columns, std::uint64_t seed, const WeightFormat& format = kFourBits
) {
  return PackedWeight::pack({random_weight(format, rows, columns, seed)}, format);
}

using Weights = std::vector<PackedWeight>;

// A product of so many rows: in one format, or in three, each with a part of the rows.
Weights random_products(bool is_mixed, int rows, int columns, std::uint64_t seed) {
  if (!is_mixed) {
    return {random_product(rows, columns, seed)};
  }
  const int few = rows / 4;
  return {
      random_product(rows - 2 * few, columns, seed),
      random_product(few, columns, seed + 20, {WeightKind::kAffine, 6, 32}),
      random_product(few, columns, seed + 21, {WeightKind::kFloat16}),
  };
}

// As linear(), each weight by itself.
mx::array product(const mx::array& x, const Projection& of) {
  std::vector<mx::array> parts;
  int first = 0;
  for (const auto& weight : of.weights) {
    const int end = first + weight.rows();
    const auto bias = of.bias ? std::optional(mx::slice(*of.bias, {first}, {end})) : std::nullopt;
    parts.push_back(linear(x, weight, bias, of.int8_rows));
    first = end;
  }
  return mx::concatenate(parts, 1);
}

// True if the operation waits for nothing but MLX's own operations, on biases.
bool is_one_operation(const mx::array& result) {
  return std::ranges::all_of(result.inputs(), [](const mx::array& input) {
    return !input.has_primitive() || std::string(input.primitive().name()) == "Contiguous";
  });
}

// Bits of a block's result alone, then of its sum and norm.
template <typename Block>
std::vector<float> bits_of(const mx::array& x, const NextNorm& next, const Block& block) {
  const mx::array alone = block(x, std::nullopt).sum;
  const ResidualNorm added = block(x, next);
  EXPECT_TRUE(is_one_operation(alone));
  EXPECT_TRUE(is_one_operation(added.sum));
  std::vector<float> bits;
  for (const auto& part : {alone, added.sum, added.normed}) {
    const auto floats = floats_of(part);
    bits.insert(bits.end(), floats.begin(), floats.end());
  }
  return bits;
}

// The same of the composition whose result is `output`.
std::vector<float> bits_apart(const mx::array& output, const NextNorm& next) {
  const ResidualNorm added = norm_residual(next.stream, output, next.norm, next.scales);
  std::vector<float> bits;
  for (const auto& part : {output, added.sum, added.normed}) {
    const auto floats = floats_of(part);
    bits.insert(bits.end(), floats.begin(), floats.end());
  }
  return bits;
}

// Kinds of norms and scales change with the seed.
NextNorm random_next(int rows, std::uint64_t seed) {
  const bool odd = seed % 2 == 1;
  return {
      .stream = random({rows, kHidden}, seed),
      .norm =
          {.kind = odd ? NormKind::kLayer : NormKind::kRms,
           .weight = random({kHidden}, seed + 1),
           .eps = kEps},
      .scales = {.sum = 0.75F, .residual = odd ? 0.3F : 1.0F},
  };
}

class BlocksTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    BlocksTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

TEST_P(BlocksTest, AnMlpGivesTheBitsOfItsParts) {
  set_threads(2);  // More rows than 8 for each: the second product computes them.
  const Weights down = {random_product(kHidden, kWide, 2)};
  for (const auto& [has_bias, is_mixed] : {std::pair(false, false), {true, false}, {true, true}}) {
    const auto gate_up = random_products(is_mixed, 2 * kWide, kHidden, 1);
    const auto bias = [&](int width, std::uint64_t seed) {
      return has_bias ? std::optional(random({width}, seed)) : std::nullopt;
    };
    const auto wide_bias = bias(2 * kWide, 4);
    const auto down_bias = bias(kHidden, 5);
    for (const int rows : {1, 3, 8, 9, 13, 33, 70}) {
      const std::vector<RowRange> int8_rows(rows == 70 ? 1 : 0, RowRange{20, 30});
      const MlpBlock block{
          .gate_up = {gate_up, wide_bias, int8_rows},
          .activation = rows % 2 == 0 ? Activation::kSilu : Activation::kGeluTanh,
          .down = {down, down_bias, int8_rows},
      };
      const auto x = random({rows, kHidden}, 6);
      const auto next = random_next(rows, 7);
      const auto run = [&](const mx::array& in, const std::optional<NextNorm>& after) {
        return after ? mlp_block(in, block, *after)
                     : ResidualNorm{mlp_block(in, block), mx::array(0)};
      };
      const auto gated = gated_activation(product(x, block.gate_up), block.activation);
      EXPECT_EQ(bits_of(x, next, run), bits_apart(product(gated, block.down), next))
          << rows << ' ' << has_bias << ' ' << is_mixed;
    }
  }
}

TEST_P(BlocksTest, AProductGivesTheBitsOfItsParts) {
  const Weights weight = {random_product(kHidden, kWide, 1)};
  for (const int rows : {1, 3, 200}) {
    const auto x = random({rows, kWide}, 2);
    for (const auto& bias : {std::optional<mx::array>(), std::optional(random({kHidden}, 3))}) {
      const Projection output{weight, bias};
      const auto next = random_next(rows, 4);
      const auto got = linear_block(x, output, next);
      const auto expected = norm_residual(next.stream, product(x, output), next.norm, next.scales);
      EXPECT_TRUE(is_one_operation(got.sum));
      EXPECT_EQ(floats_of(got.sum), floats_of(expected.sum)) << rows;
      EXPECT_EQ(floats_of(got.normed), floats_of(expected.normed)) << rows;
    }
  }
}

// The operands of an attention block.
struct AttentionCase {
  AttendCase c;
  Weights qkv;
  Weights output;
  std::optional<mx::array> bias;

  explicit AttentionCase(bool has_bias, bool is_mixed = false)
      : c(two_groups()),
        qkv(random_products(is_mixed, qkv_rows(), kHidden, 1)),
        output({random_product(kHidden, heads() * c.head_dim, 2)}) {
    if (has_bias) {
      bias = random({qkv_rows()}, 3);
    }
  }

  static AttendCase two_groups() {
    AttendCase c;
    c.kv_heads = 2;
    c.group = 2;
    return c;
  }

  int heads() const { return c.kv_heads * c.group; }

  int qkv_rows() const { return (heads() + 2 * c.kv_heads) * c.head_dim; }

  MergedHeads merged_heads(int rows, std::uint64_t seed, bool has_norms) const {
    MergedHeads of{
        heads(),
        c.kv_heads,
        c.head_dim,
        {},
        random({rows, 8}, seed + 5),
        random({rows, 8}, seed + 6)
    };
    if (has_norms) {
      of.norms = {random({c.head_dim}, 4), random({c.head_dim}, 5), kEps};
    }
    return of;
  }
};

// The composition that attention_block stands for.
mx::array attention_apart(const mx::array& x, const AttentionBlock& block) {
  const auto merged = product(x, block.qkv);
  return product(attend_merged(merged, block.heads, block.spans, block.options), block.output);
}

// One pass with a block or its parts, alone or added to a residual stream.
ResidualNorm attention_pass(
    const mx::array& x, const AttentionBlock& block, const NextNorm* next, bool is_block
) {
  if (!is_block) {
    const auto output = attention_apart(x, block);
    return next != nullptr ? add_and_norm(output, *next) : ResidualNorm{output, output};
  }
  if (next != nullptr) {
    const auto added = attention_block(x, block, *next);
    EXPECT_TRUE(is_one_operation(added.sum));
    return added;
  }
  const auto output = attention_block(x, block);
  EXPECT_TRUE(is_one_operation(output));
  return {output, output};
}

// Bits of a prompt, then of one token that sees what the prompt stored.
std::vector<float> attention_bits(
    const AttentionCase& of, bool has_norms, bool adds, bool is_block
) {
  constexpr int kRows = 70;
  const std::optional<mx::array> no_bias;
  auto store = std::make_shared<KvStore>(of.c.shape(), KvLayout::kPaged);
  store->prepare(0, kRows + 1);
  std::vector<float> bits;
  for (const auto& [first, rows] : {std::pair(0, kRows), {kRows, 1}}) {
    const auto seed = static_cast<std::uint64_t>(first);
    const auto heads = of.merged_heads(rows, seed, has_norms);
    const std::vector<AttendSpan> spans = {span_of(of.c, 0, rows, first, store)};
    const AttentionBlock block{{of.qkv, of.bias}, heads, spans, of.c.options, {of.output, no_bias}};
    const auto next = random_next(rows, seed + 8);
    const auto result =
        attention_pass(random({rows, kHidden}, seed + 7), block, adds ? &next : nullptr, is_block);
    for (const auto& part : {result.sum, result.normed}) {
      const auto floats = floats_of(part);
      bits.insert(bits.end(), floats.begin(), floats.end());
    }
  }
  return bits;
}

TEST_P(BlocksTest, AttentionGivesTheBitsOfItsParts) {
  // More: norms of heads, and a bias.
  for (const auto& [has_more, is_mixed] : {std::pair(false, false), {true, false}, {true, true}}) {
    const AttentionCase of(has_more, is_mixed);
    for (const bool adds : {false, true}) {
      EXPECT_EQ(attention_bits(of, has_more, adds, true), attention_bits(of, has_more, adds, false))
          << has_more << ' ' << is_mixed << ' ' << adds;
    }
  }
}

// Contiguous stores have no task of ours: the block is its composition there.
TEST(Blocks, OverContiguousStoresAttentionIsItsParts) {
  constexpr int kRows = 9;
  const AttentionCase of(true);
  const std::optional<mx::array> no_bias;
  const auto run = [&](bool is_block) {
    auto store = std::make_shared<KvStore>(of.c.shape(), KvLayout::kContiguous);
    store->prepare(0, kRows);
    const auto heads = of.merged_heads(kRows, 1, true);
    const std::vector<AttendSpan> spans = {span_of(of.c, 0, kRows, 0, store)};
    const AttentionBlock block{{of.qkv, of.bias}, heads, spans, of.c.options, {of.output, no_bias}};
    const auto x = random({kRows, kHidden}, 7);
    const auto next = random_next(kRows, 8);
    if (is_block) {
      return floats_of(attention_block(x, block, next).normed);
    }
    return floats_of(add_and_norm(attention_apart(x, block), next).normed);
  };
  EXPECT_EQ(run(true), run(false));
}

// What is one operation is said by the caller, never found in the graph.
TEST(Blocks, PublicOperationsStayApart) {
  const auto weight = random_product(kHidden, kHidden, 1);
  const auto next = random_next(3, 2);
  const auto added = linear(random({3, kHidden}, 4), weight);
  const auto got = norm_residual(next.stream, added, next.norm);
  EXPECT_STREQ(got.sum.primitive().name(), "SakerNormResidual");
  EXPECT_FALSE(is_one_operation(got.sum));
}

TEST(Blocks, WrongShapesAreErrors) {
  const Weights gate_up = {random_product(2 * kWide, kHidden, 1)};
  const Weights down = {random_product(kHidden, kWide, 2)};
  const Weights square = {random_product(kHidden, kHidden, 6)};
  const std::optional<mx::array> none;
  const MlpBlock block{{gate_up, none}, Activation::kSilu, {down, none}};
  const auto x = random({3, kHidden}, 3);
  EXPECT_NO_THROW(mlp_block(x, block, random_next(3, 4)));
  EXPECT_THROW(mlp_block(x, block, random_next(4, 4)), Error);
  EXPECT_THROW(mlp_block(random({3, kWide}, 3), block), Error);
  const MlpBlock turned{{gate_up, none}, Activation::kSilu, {gate_up, none}};
  EXPECT_THROW(mlp_block(x, turned), Error);
  NextNorm narrow = random_next(3, 4);
  narrow.norm.weight = random({kHidden - 1}, 5);
  EXPECT_THROW(linear_block(x, {square, none}, narrow), Error);
  const AttentionCase of(false);
  const auto heads = of.merged_heads(3, 1, false);
  const std::vector<AttendSpan> no_spans;
  const AttentionBlock attention{{of.qkv, none}, heads, no_spans, of.c.options, {of.output, none}};
  EXPECT_THROW(attention_block(x, attention), Error);
}

}  // namespace
}  // namespace saker::kernels

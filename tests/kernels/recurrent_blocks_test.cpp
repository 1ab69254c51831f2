// SPDX-License-Identifier: Apache-2.0

// Layers with states as one operation have the bits of the compositions that they stand for.

#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/ops/activation.h"
#include "saker/kernels/ops/recurrent/delta_block.h"
#include "saker/kernels/ops/recurrent/short_convolution.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/random_weights.h"
#include "tests/kernels/rows.h"
#include "tests/kernels/saved_machine.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

constexpr int kBlockHidden = 256;
constexpr WeightFormat kBlockCodes{.kind = WeightKind::kAffine, .bits = 4, .group_size = 32};
constexpr DeltaShape kDeltaHeads{
    .key_heads = 2, .value_heads = 4, .key_dim = 32, .value_dim = 64, .taps = 4
};

bool has_bits_of(const mx::array& a, const mx::array& b) {
  const auto left = to_vector(a);
  const auto right = to_vector(b);
  return left.size() == right.size() &&
         std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

mx::array vector_of(int count, std::uint64_t seed) {
  auto values = mx::flatten(random_rows(1, count, seed));
  mx::eval(values);
  return values;
}

mx::array columns_of(const mx::array& x, int first, int count) {
  return mx::slice(x, {0, first}, {x.shape(0), first + count});
}

// A weight and a bias.
struct Operand {
  std::vector<PackedWeight> weights;
  std::optional<mx::array> bias;

  Operand(const WeightFormat& format, int rows, int columns, bool has_bias, std::uint64_t seed)
      : weights({PackedWeight::pack({random_weight(format, rows, columns, seed)}, format)}) {
    if (has_bias) {
      bias = vector_of(rows, seed + 1);
    }
  }

  Projection projection() const { return {weights, bias}; }
};

// The rows before a block, and where its result goes.
struct Stream {
  mx::array x;
  NextNorm next;

  Stream(int rows, std::uint64_t seed)
      : x(random_rows(rows, kBlockHidden, seed)),
        next{
            .stream = random_rows(rows, kBlockHidden, seed + 1),
            .norm = {.weight = vector_of(kBlockHidden, seed + 2)},
            .scales = {.residual = 0.5F},
        } {}
};

struct DeltaLayer {
  Operand inputs;
  Operand output;
  DeltaWeights weights;
  mx::array norm;

  DeltaLayer(const WeightFormat& format, bool has_bias, std::uint64_t seed)
      : inputs(
            format,
            kDeltaHeads.channels() + kDeltaHeads.outputs() + 2 * kDeltaHeads.value_heads,
            kBlockHidden,
            has_bias,
            seed
        ),
        output(format, kBlockHidden, kDeltaHeads.outputs(), has_bias, seed + 5),
        weights{
            random_rows(kDeltaHeads.taps, kDeltaHeads.channels(), seed),
            mx::exp(vector_of(kDeltaHeads.value_heads, seed + 1)),
            vector_of(kDeltaHeads.value_heads, seed + 2),
        },
        norm(vector_of(kDeltaHeads.value_dim, seed + 3)) {
    mx::eval(weights.convolution, weights.decay_rate);
  }

  DeltaBlock block(const std::vector<DeltaSpan>& spans) const {
    return {inputs.projection(), weights, kDeltaHeads, spans, norm, 1e-6F, output.projection()};
  }

  // The composition.
  DeltaBlockResult apart(const Stream& stream, const std::vector<DeltaSpan>& spans) const {
    const int rows = stream.x.shape(0);
    const auto merged = linear(stream.x, inputs.projection());
    const int gates = kDeltaHeads.channels();
    const int steps = gates + kDeltaHeads.outputs();
    const DeltaInputs parts{
        .rows = columns_of(merged, 0, gates),
        .a = columns_of(merged, steps + kDeltaHeads.value_heads, kDeltaHeads.value_heads),
        .b = columns_of(merged, steps, kDeltaHeads.value_heads),
    };
    auto result = gated_delta(parts, weights, kDeltaHeads, spans);
    const mx::Shape heads = {rows, kDeltaHeads.value_heads, kDeltaHeads.value_dim};
    const auto normed = rms_norm(mx::reshape(result.rows, heads), norm, 1e-6F);
    const auto gate = mx::reshape(columns_of(merged, gates, kDeltaHeads.outputs()), heads);
    const auto gated = gated_activation(gate, normed, Activation::kSilu);
    const auto flat = mx::reshape(gated, {rows, kDeltaHeads.outputs()});
    return {add_and_norm(linear(flat, output.projection()), stream.next), std::move(result.states)};
  }
};

// Some spans of random lengths with random states.
template <typename Span, typename MakeState>
std::pair<std::vector<Span>, int> random_spans(const MakeState& make_state) {
  std::vector<Span> spans;
  int rows = 0;
  const int count = *rc::gen::inRange(1, 4);
  for (int i = 0; i < count; ++i) {
    const int length = *rc::gen::element(1, 1, 2, 7, 40);
    spans.push_back({rows, length, make_state(static_cast<std::uint64_t>(i) + 9)});
    rows += length;
  }
  return {spans, rows};
}

DeltaState random_delta_state(std::uint64_t seed) {
  const mx::Shape shape = {kDeltaHeads.value_heads, kDeltaHeads.key_dim, kDeltaHeads.value_dim};
  return {
      random_rows(kDeltaHeads.taps - 1, kDeltaHeads.channels(), seed),
      mx::random::normal(shape, mx::float32, mx::random::key(seed + 1)),
  };
}

class RecurrentBlocksTest : public InstructionSetTest {};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    RecurrentBlocksTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

TEST_P(RecurrentBlocksTest, ADeltaLayerHasTheBitsOfItsParts) {
  EXPECT_TRUE(rc::check("a delta layer has the bits of its parts", [] {
    const auto format = *rc::gen::elementOf(all_formats());
    const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
    const DeltaLayer layer(format, *rc::gen::arbitrary<bool>(), seed);
    const auto [spans, rows] = random_spans<DeltaSpan>(random_delta_state);
    const Stream stream(rows, seed);
    set_threads(*rc::gen::inRange(1, 5));
    const DeltaBlock block = layer.block(spans);
    RC_ASSERT(runs_delta_block(stream.x, block, stream.next));
    const auto got = delta_block(stream.x, block, stream.next);
    set_threads(*rc::gen::inRange(1, 5));
    const auto expected = layer.apart(stream, spans);
    RC_ASSERT(has_bits_of(got.rows.sum, expected.rows.sum));
    RC_ASSERT(has_bits_of(got.rows.normed, expected.rows.normed));
    for (std::size_t i = 0; i < spans.size(); ++i) {
      RC_ASSERT(has_bits_of(got.states[i].inputs, expected.states[i].inputs));
      RC_ASSERT(has_bits_of(got.states[i].memory, expected.states[i].memory));
    }
  }));
}

TEST_P(RecurrentBlocksTest, AConvolutionLayerHasTheBitsOfItsParts) {
  EXPECT_TRUE(rc::check("a convolution layer has the bits of its parts", [] {
    constexpr int kChannels = 512;
    const auto format = *rc::gen::elementOf(all_formats());
    const auto seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
    const bool has_bias = *rc::gen::arbitrary<bool>();
    const Operand input(format, 3 * kChannels, kBlockHidden, has_bias, seed);
    const Operand output(format, kBlockHidden, kChannels, has_bias, seed + 1);
    ConvolutionWeights weights{random_rows(3, kChannels, seed)};
    if (*rc::gen::arbitrary<bool>()) {
      weights.bias = vector_of(kChannels, seed);
    }
    mx::eval(weights.taps);
    const auto [spans, rows] = random_spans<RecurrentSpan>([](std::uint64_t of) {
      return StateArrays{random_rows(2, kChannels, of)};
    });
    const Stream stream(rows, seed);
    set_threads(*rc::gen::inRange(1, 5));
    const ConvolutionBlock block{input.projection(), weights, spans, output.projection()};
    RC_ASSERT(runs_convolution_block(stream.x, block, stream.next));
    const auto got = convolution_block(stream.x, block, stream.next);
    set_threads(*rc::gen::inRange(1, 5));
    const auto merged = linear(stream.x, input.projection());
    const auto convolved = short_convolution(merged, weights, spans);
    const auto expected = add_and_norm(linear(convolved.rows, output.projection()), stream.next);
    RC_ASSERT(has_bits_of(got.rows.sum, expected.sum));
    RC_ASSERT(has_bits_of(got.rows.normed, expected.normed));
    for (std::size_t i = 0; i < spans.size(); ++i) {
      RC_ASSERT(has_bits_of(got.states[i].front(), convolved.states[i].front()));
    }
  }));
}

TEST(RecurrentBlocks, RefuseWhatDoesNotFit) {
  const DeltaLayer layer(kBlockCodes, false, 1);
  const Stream stream(3, 1);
  const std::vector<DeltaSpan> few = {{0, 2, random_delta_state(1)}};
  EXPECT_THROW(delta_block(stream.x, layer.block(few), stream.next), Error);
  const std::vector<DeltaSpan> spans = {{0, 3, random_delta_state(1)}};
  EXPECT_THROW(delta_block(stream.x, layer.block(spans), Stream(2, 1).next), Error);
  const Operand narrow(kBlockCodes, 512, kBlockHidden, false, 1);
  DeltaBlock block = layer.block(spans);
  const DeltaBlock wrong{
      narrow.projection(), block.weights, kDeltaHeads, spans, layer.norm, 1e-6F, block.output
  };
  EXPECT_THROW(delta_block(stream.x, wrong, stream.next), Error);
}

TEST(RecurrentBlocks, RunOnlyOnTheProcessor) {
  const DeltaLayer layer(kBlockCodes, false, 1);
  const Stream stream(1, 1);
  const std::vector<DeltaSpan> spans = {{0, 1, random_delta_state(1)}};
  EXPECT_TRUE(runs_delta_block(stream.x, layer.block(spans), stream.next));
  pretend_gpu(true);
  EXPECT_FALSE(runs_delta_block(stream.x, layer.block(spans), stream.next));
  pretend_gpu(false);
}

}  // namespace
}  // namespace saker::kernels

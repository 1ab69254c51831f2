// SPDX-License-Identifier: Apache-2.0

// The gated delta rule on CPU with the heads of Qwen3.5-0.8B, and KDA with as many, convolution and
// gates included:
// answers in bytes of state read and written per second, prompts in multiplications and additions
// per second.

#include "saker/kernels/ops/recurrent/gated_delta.h"
#include "saker/kernels/ops/recurrent/kda.h"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

constexpr DeltaShape kShape = {
    .key_heads = 16, .value_heads = 16, .key_dim = 128, .value_dim = 128, .taps = 4
};
constexpr std::int64_t kStateFloats = std::int64_t{16} * 128 * 128;

mx::array random_array(mx::Shape shape) {
  auto x = mx::random::normal(std::move(shape));
  x.eval();
  return x;
}

DeltaWeights random_weights() {
  return {
      random_array({kShape.taps, kShape.channels()}),
      mx::exp(random_array({kShape.value_heads})),
      random_array({kShape.value_heads}),
  };
}

// `rows` tokens through so many layers in one evaluation.
void delta(benchmark::State& state, int layers) {
  const int rows = static_cast<int>(state.range(0));
  const DeltaInputs inputs = {
      random_array({rows, kShape.channels()}),
      random_array({rows, kShape.value_heads}),
      random_array({rows, kShape.value_heads}),
  };
  const DeltaWeights weights = random_weights();
  std::vector<DeltaState> states(layers, empty_delta_state(kShape));
  for (auto _ : state) {
    std::vector<mx::array> results;
    for (DeltaState& before : states) {
      const DeltaResult result = gated_delta(inputs, weights, kShape, {{0, rows, before}});
      results.insert(
          results.end(), {result.rows, result.states[0].inputs, result.states[0].memory}
      );
      before = result.states[0];
    }
    mx::eval(results);
  }
}

// As above with KDA.
void kda(benchmark::State& state, int layers) {
  constexpr KdaShape kKdaShape{.heads = 16, .head_dim = 128, .taps = 4};
  const int rows = static_cast<int>(state.range(0));
  const auto wide = [&](int count) { return random_array({count, kKdaShape.width()}); };
  const KdaInputs inputs{
      .rows = {wide(rows), wide(rows), wide(rows)},
      .steps = wide(rows),
      .shares = random_array({rows, kKdaShape.heads}),
  };
  const KdaWeights weights{
      .convolutions = {wide(kKdaShape.taps), wide(kKdaShape.taps), wide(kKdaShape.taps)},
      .decay_rate = mx::exp(random_array({kKdaShape.heads})),
      .step_bias = random_array({kKdaShape.width()}),
  };
  std::vector<StateArrays> states(layers, empty_kda_state(kKdaShape));
  for (auto _ : state) {
    std::vector<mx::array> results;
    for (StateArrays& before : states) {
      const auto result = kernels::kda(inputs, weights, kKdaShape, {{0, rows, before}});
      before = result.states[0];
      results.push_back(result.rows);
      results.insert(results.end(), before.begin(), before.end());
    }
    mx::eval(results);
  }
}

void kda_decode(benchmark::State& state) {
  kda(state, 18);
}

void kda_prefill(benchmark::State& state) {
  kda(state, 1);
}

void delta_decode(benchmark::State& state) {
  constexpr int kLayers = 18;
  delta(state, kLayers);
  const std::int64_t floats = state.range(0) * 2 * kStateFloats * kLayers;
  state.SetBytesProcessed(
      static_cast<std::int64_t>(state.iterations()) * floats *
      static_cast<std::int64_t>(sizeof(float))
  );
}

void delta_prefill(benchmark::State& state) {
  delta(state, 1);
  // Decay, what is known of the key, what is written, what is read.
  constexpr double kPerElement = 7.0;
  state.counters["FLOP/s"] = benchmark::Counter(
      kPerElement * static_cast<double>(state.range(0) * kStateFloats) *
          static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate
  );
}

BENCHMARK(delta_decode)->Arg(1)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(delta_prefill)->Arg(512)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(kda_decode)->Arg(1)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(kda_prefill)->Arg(512)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0

// Recurrent layers of hybrids on CPU: the selective scan with the heads of Nemotron 3 Nano, and the
// short convolution of LFM2 1.2B. Answers in bytes of state read and written per second, prompts in
// multiplications and additions per second.

#include "saker/kernels/ops/recurrent/selective_scan.h"
#include "saker/kernels/ops/recurrent/short_convolution.h"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace saker::kernels {
namespace {

constexpr ScanShape kScan = {.heads = 64, .head_dim = 64, .groups = 8, .state_dim = 128, .taps = 4};
constexpr std::int64_t kScanFloats = std::int64_t{64} * 64 * 128;

mx::array scan_array(mx::Shape shape) {
  auto x = mx::random::normal(std::move(shape));
  x.eval();
  return x;
}

ScanWeights scan_weights() {
  return {
      .convolution = {scan_array({kScan.taps, kScan.channels()}), scan_array({kScan.channels()})},
      .decay_rate = mx::exp(scan_array({kScan.heads})),
      .step_bias = scan_array({kScan.heads}),
      .skip = scan_array({kScan.heads}),
  };
}

// `rows` tokens through so many layers in one evaluation.
void scan(benchmark::State& state, int layers) {
  const int rows = static_cast<int>(state.range(0));
  const ScanInputs inputs = {scan_array({rows, kScan.channels()}), scan_array({rows, kScan.heads})};
  const ScanWeights weights = scan_weights();
  std::vector<StateArrays> states(static_cast<std::size_t>(layers), empty_scan_state(kScan));
  for (auto _ : state) {
    std::vector<mx::array> results;
    for (StateArrays& before : states) {
      const RecurrentResult result = selective_scan(inputs, weights, kScan, {{0, rows, before}});
      results.push_back(result.rows);
      results.insert(results.end(), result.states[0].begin(), result.states[0].end());
      before = result.states[0];
    }
    mx::eval(results);
  }
}

void scan_decode(benchmark::State& state) {
  constexpr int kLayers = 23;
  scan(state, kLayers);
  const std::int64_t floats = state.range(0) * 2 * kScanFloats * kLayers;
  state.SetBytesProcessed(
      static_cast<std::int64_t>(state.iterations()) * floats *
      static_cast<std::int64_t>(sizeof(float))
  );
}

void scan_prefill(benchmark::State& state) {
  scan(state, 1);
  // Decay, what is written, what is read.
  constexpr double kPerElement = 5.0;
  state.counters["FLOP/s"] = benchmark::Counter(
      kPerElement * static_cast<double>(state.range(0) * kScanFloats) *
          static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate
  );
}

void short_convolution_rows(benchmark::State& state) {
  constexpr int kChannels = 2048;
  const int rows = static_cast<int>(state.range(0));
  const auto inputs = scan_array({rows, 3 * kChannels});
  const ConvolutionWeights weights{scan_array({3, kChannels})};
  const StateArrays before = empty_convolution_state(3, kChannels);
  for (auto _ : state) {
    const auto result = short_convolution(inputs, weights, {{0, rows, before}});
    mx::eval(result.rows, result.states[0][0]);
  }
}

BENCHMARK(scan_decode)->Arg(1)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(scan_prefill)->Arg(512)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(short_convolution_rows)->Arg(1)->Arg(512)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace saker::kernels

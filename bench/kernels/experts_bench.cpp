// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts with the shape of a model of 30 billion parameters of which 3 are active: 8
// experts of 768 for each row of 2048. One pass goes over two layers, as one operation each and as
// their parts.
#include "saker/kernels/layout/block_format.h"
#include "saker/kernels/ops/experts/experts_block.h"

#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <vector>

namespace saker::kernels {
namespace {

constexpr int kLayers = 2;
constexpr int kExperts = 64;
constexpr int kChosen = 8;
constexpr int kHidden = 2048;
constexpr int kWide = 768;

WeightTensors random_tensors(int rows, std::int64_t row_bytes) {
  const auto words = static_cast<std::size_t>(rows * row_bytes / 4);
  auto values = std::make_shared<std::vector<std::uint32_t>>(words);
  std::mt19937 random(static_cast<std::uint32_t>(rows));
  for (std::uint32_t& word : *values) {
    // No float among these bytes is tiny, huge or no number.
    word = (random() & 0x1f1f1f1fU) | 0x20202020U;
  }
  WeightTensors tensors;
  tensors.weight.dtype = DType::kUInt8;
  tensors.weight.shape = {rows, row_bytes};
  tensors.weight.data =
      std::shared_ptr<const std::byte>(values, reinterpret_cast<const std::byte*>(values->data()));
  return tensors;
}

ExpertWeights random_experts(const WeightFormat& format, int rows, int columns) {
  const auto tensors = random_tensors(rows, stored_elements(format, columns));
  const std::vector<std::vector<WeightTensors>> experts(kExperts, {tensors});
  return ExpertWeights::pack(experts, format);
}

std::vector<PackedWeight> random_router() {
  auto tensors = random_tensors(kExperts, std::int64_t{kHidden} * 4);
  tensors.weight.dtype = DType::kFloat32;
  tensors.weight.shape = {kExperts, kHidden};
  return {PackedWeight::pack({tensors}, {.kind = WeightKind::kFloat32})};
}

mx::array apart(const mx::array& x, const ExpertsBlock& block) {
  const auto choice = choose_experts(linear(x, block.router), block.routing, block.router_tensors);
  const auto sorted = sort_by_expert(choice.ids, kExperts);
  const auto merged = expert_linear(gather_rows(x, sorted), sorted, block.gate_up);
  const auto fed = expert_linear(gated_activation(merged, block.activation), sorted, block.down);
  return combine_experts(fed, sorted, choice.weights);
}

void run_mixtures(benchmark::State& state, const WeightFormat& format, bool is_block) {
  const int rows = static_cast<int>(state.range(0));
  const auto router = random_router();
  const std::optional<mx::array> no_bias;
  std::vector<ExpertsBlock> layers;
  for (int layer = 0; layer < kLayers; ++layer) {
    layers.push_back({
        {router, no_bias},
        {.chosen = kChosen, .score = RouterScore::kSoftmaxOfChosen},
        {},
        random_experts(format, 2 * kWide, kHidden),
        Activation::kSilu,
        random_experts(format, kHidden, kWide),
    });
  }
  std::uint64_t pass = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto x = mx::random::normal({rows, kHidden}, mx::float32, mx::random::key(pass++));
    mx::eval(x);
    state.ResumeTiming();
    for (const ExpertsBlock& layer : layers) {
      x = is_block ? experts_block(x, layer) : apart(x, layer);
    }
    mx::eval(x);
  }
  const double bytes =
      static_cast<double>(layers[0].gate_up.expert_nbytes() + layers[0].down.expert_nbytes());
  const auto passes = static_cast<double>(state.iterations());
  using benchmark::Counter;
  if (rows == 1) {
    const double read = bytes * kChosen * kLayers * passes / 1e9;
    state.counters["GB/s"] = Counter(read, Counter::kIsRate);
  }
  state.counters["rows"] = Counter(rows * kLayers * passes, Counter::kIsRate);
}

void row_counts(benchmark::internal::Benchmark* bench) {
  for (const int rows : {1, 4, 8, 32, 128, 512}) {
    bench->Arg(rows);
  }
  bench->UseRealTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(run_mixtures, q4_0, weight_format(BlockKind::kQ40), true)->Apply(row_counts);
BENCHMARK_CAPTURE(run_mixtures, q4_0_parts, weight_format(BlockKind::kQ40), false)
    ->Apply(row_counts);
BENCHMARK_CAPTURE(run_mixtures, q4_k, weight_format(BlockKind::kQ4K), true)->Apply(row_counts);
BENCHMARK_CAPTURE(run_mixtures, q4_k_parts, weight_format(BlockKind::kQ4K), false)
    ->Apply(row_counts);

}  // namespace
}  // namespace saker::kernels

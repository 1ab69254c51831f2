// SPDX-License-Identifier: Apache-2.0

// Attention on CPU with the heads of Qwen3-0.6B: decode in bytes of cache read per second, prefill
// in multiplications and additions per second, and what a pass of decode costs beside the work.

#include "saker/kernels/ops/attend.h"

#include <benchmark/benchmark.h>

#include <cmath>
#include <memory>
#include <vector>

namespace saker::kernels {
namespace {

constexpr int kHeads = 16;
constexpr int kKvHeads = 8;
constexpr int kDim = 128;

AttendOptions options() {
  AttendOptions result;
  result.scale = 1.0F / std::sqrt(static_cast<float>(kDim));
  return result;
}

mx::array random_rows(int rows, int heads) {
  auto x = mx::random::normal({rows, heads, kDim});
  x.eval();
  return x;
}

std::shared_ptr<KvStore> filled_store(int rows, int bits) {
  auto store = std::make_shared<KvStore>(KvShape{kKvHeads, kDim, kDim, mx::bfloat16, bits});
  store->prepare(0, rows + 1);
  auto values = mx::random::normal({kKvHeads, rows, kDim});
  values.eval();
  store->write(0, values, values);
  return store;
}

constexpr int kLayers = 8;  // That follow each other in one evaluation.

// Of the cached rows of one layer, with scales and biases.
std::int64_t cache_bytes(int rows, int bits) {
  const std::int64_t terms = bits == 16 ? 0 : 2L * kKvHeads * kDim / 64 * 2 * 2;
  return (2L * kKvHeads * kDim * bits / 8 + terms) * rows;
}

// One token after `context` others in a cache of some bits.
void decode(benchmark::State& state) {
  const int context = static_cast<int>(state.range(0));
  const int bits = static_cast<int>(state.range(1));
  const auto q = random_rows(1, kHeads);
  const auto k = random_rows(1, kKvHeads);
  std::vector<std::shared_ptr<KvStore>> stores;
  for (int i = 0; i < kLayers; ++i) {
    stores.push_back(filled_store(context, bits));
  }
  for (auto _ : state) {
    std::vector<mx::array> outputs;
    for (const auto& store : stores) {
      outputs.push_back(attend(q, k, k, {{0, 1, context, store}}, options()));
    }
    mx::eval(outputs);
  }
  state.SetBytesProcessed(state.iterations() * kLayers * cache_bytes(context + 1, bits));
}

// One token of each of some sequences, after 512 others.
void decode_many(benchmark::State& state) {
  constexpr int kContext = 512;
  const int sequences = static_cast<int>(state.range(0));
  const int bits = static_cast<int>(state.range(1));
  const auto q = random_rows(sequences, kHeads);
  const auto k = random_rows(sequences, kKvHeads);
  std::vector<std::vector<AttendSpan>> layers(kLayers);
  for (auto& spans : layers) {
    for (int i = 0; i < sequences; ++i) {
      spans.push_back({i, 1, kContext, filled_store(kContext, bits)});
    }
  }
  for (auto _ : state) {
    std::vector<mx::array> outputs;
    for (const auto& spans : layers) {
      outputs.push_back(attend(q, k, k, spans, options()));
    }
    mx::eval(outputs);
  }
  state.SetBytesProcessed(
      state.iterations() * kLayers * sequences * cache_bytes(kContext + 1, bits)
  );
}

// `rows` tokens after `context` others.
void prefill(benchmark::State& state) {
  const int rows = static_cast<int>(state.range(0));
  const int context = static_cast<int>(state.range(1));
  const int bits = static_cast<int>(state.range(2));
  const auto q = random_rows(rows, kHeads);
  const auto k = random_rows(rows, kKvHeads);
  const auto store = filled_store(context + rows, bits);
  for (auto _ : state) {
    mx::eval(attend(q, k, k, {{0, rows, context, store}}, options()));
  }
  const double keys = rows * (context + 0.5 * (rows + 1));
  state.counters["FLOP/s"] = benchmark::Counter(
      4.0 * keys * kHeads * kDim * static_cast<double>(state.iterations()),
      benchmark::Counter::kIsRate
  );
}

BENCHMARK(decode)
    ->ArgsProduct({{64, 512, 4096, 32768}, {16, 8, 4}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(decode_many)
    ->ArgsProduct({{8}, {16, 8, 4}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK(prefill)
    ->ArgsProduct({{512}, {0, 4096}, {16, 8, 4}})
    ->ArgsProduct({{8}, {512}, {16, 8, 4}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace saker::kernels

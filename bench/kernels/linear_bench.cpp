// SPDX-License-Identifier: Apache-2.0
// Matrix products with the shapes of a model of 0.6 billion parameters. One pass goes over four
// layers, more than a cache holds, as decoding does. Prints bytes and operations a second and their
// share of what this machine measures at most.
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/multiply.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/kernels/layout/block_format.h"
#include "saker/kernels/limits/machine_limits.h"
#include "saker/kernels/storage/packed_storage.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>
#include <vector>

namespace saker::kernels {
namespace {

constexpr int kLayers = 4;

struct Shape {
  int rows;
  int columns;
};

constexpr Shape kShapes[] = {{4096, 1024}, {1024, 2048}, {6144, 1024}, {1024, 3072}};

Tensor random_tensor(DType dtype, int rows, int columns, std::uint32_t mask, std::uint32_t bits) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = {rows, columns};
  auto words = std::make_shared<std::vector<std::uint32_t>>(tensor.nbytes() / 4 + 1);
  std::mt19937 random(static_cast<std::uint32_t>(rows + columns));
  for (std::uint32_t& word : *words) {
    word = (random() & mask) | bits;
  }
  tensor.data =
      std::shared_ptr<const std::byte>(words, reinterpret_cast<const std::byte*>(words->data()));
  return tensor;
}

// bf16 values and scales of about 1/64.
Tensor random_bf16(int rows, int columns) {
  return random_tensor(DType::kBFloat16, rows, columns, 0x80ff80ffU, 0x3c003c00U);
}

PackedWeight random_weight(const Shape& shape, const WeightFormat& format) {
  WeightTensors tensors;
  if (is_block(format.kind)) {
    // No float16 among these bytes is tiny, huge or no number.
    const auto bytes = static_cast<int>(stored_elements(format, shape.columns));
    tensors.weight = random_tensor(DType::kUInt8, shape.rows, bytes, 0x1f1f1f1fU, 0x20202020U);
  } else if (format.kind == WeightKind::kAffine) {
    const int groups = shape.columns / format.group_size;
    const int words = shape.columns * format.bits / 32;
    tensors.weight = random_tensor(DType::kUInt32, shape.rows, words, 0xffffffffU, 0);
    tensors.scales = random_bf16(shape.rows, groups);
    tensors.biases = random_bf16(shape.rows, groups);
  } else if (format.bits != 0) {
    const int groups = shape.columns / format.group_size;
    const int words = shape.columns * format.bits / 32;
    tensors.weight = random_tensor(DType::kUInt32, shape.rows, words, 0x77777777U, 0);
    tensors.scales = random_tensor(DType::kUInt8, shape.rows, groups, 0, 0x38383838U);
  } else if (format.kind == WeightKind::kBFloat16) {
    tensors.weight = random_bf16(shape.rows, shape.columns);
  } else {
    tensors.weight =
        random_tensor(DType::kFloat32, shape.rows, shape.columns, 0x80ffffffU, 0x3c000000U);
  }
  return PackedWeight::pack({tensors}, format);
}

const MachineLimits& limits() {
  static const MachineLimits measured = measure_limits();
  return measured;
}

void run_layers(benchmark::State& state, const WeightFormat& format) {
  const int rows = static_cast<int>(state.range(0));
  std::vector<PackedWeight> weights;
  double bytes = 0;
  double operations = 0;
  int width = 0;
  for (int layer = 0; layer < kLayers; ++layer) {
    for (const Shape& shape : kShapes) {
      weights.push_back(random_weight(shape, format));
      bytes += static_cast<double>(weights.back().nbytes());
      operations += 2.0 * rows * shape.rows * shape.columns;
      width = std::max({width, shape.rows, shape.columns});
    }
  }
  const std::vector<float> x(static_cast<std::size_t>(rows) * width, 0.5F);
  std::vector<float> y(x.size());
  for (auto _ : state) {
    for (const PackedWeight& weight : weights) {
      const InputRows input = {x.data(), weight.columns(), 1, rows};
      const RowProduct product = {&weight.storage().matrix, input, nullptr, y.data()};
      multiply_rows(*kernel_table().linear, {&product, 1});
    }
  }
  const bool has_pairs =
      kernel_table_name().starts_with("avx512_bf16") || kernel_table_name() == "amx";
  const bool pairs = has_pairs && format.kind != WeightKind::kFloat32;
  const double peak = pairs ? limits().bf16_gflops : limits().f32_gflops;
  const auto passes = static_cast<double>(state.iterations());
  using benchmark::Counter;
  state.counters["GB/s"] = Counter(bytes * passes / 1e9, Counter::kIsRate);
  state.counters["GFLOP/s"] = Counter(operations * passes / 1e9, Counter::kIsRate);
  state.counters["of_read"] = Counter(bytes * passes / 1e9 / limits().read_gbps, Counter::kIsRate);
  state.counters["of_peak"] = Counter(operations * passes / 1e9 / peak, Counter::kIsRate);
}

void row_counts(benchmark::internal::Benchmark* bench) {
  for (const int rows : {1, 2, 6, 8, 12, 13, 16, 24, 32, 64, 512}) {
    bench->Arg(rows);
  }
  bench->UseRealTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(run_layers, q4, WeightFormat{WeightKind::kAffine, 4, 64})->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, q8, WeightFormat{WeightKind::kAffine, 8, 64})->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, bf16, WeightFormat{WeightKind::kBFloat16, 0, 0})->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, mxfp4, WeightFormat{WeightKind::kMxfp4, 4, 32})->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, nvfp4, WeightFormat{WeightKind::kNvfp4, 4, 16})->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, mxfp8, WeightFormat{WeightKind::kMxfp8, 8, 32})->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, f32, WeightFormat{WeightKind::kFloat32, 0, 0})->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, q2_k, weight_format(BlockKind::kQ2K))->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, q3_k, weight_format(BlockKind::kQ3K))->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, q4_k, weight_format(BlockKind::kQ4K))->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, q5_k, weight_format(BlockKind::kQ5K))->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, q6_k, weight_format(BlockKind::kQ6K))->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, q4_0, weight_format(BlockKind::kQ40))->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, q5_0, weight_format(BlockKind::kQ50))->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, q8_0, weight_format(BlockKind::kQ80))->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, iq4_nl, weight_format(BlockKind::kIq4Nl))->Apply(row_counts);
BENCHMARK_CAPTURE(run_layers, iq4_xs, weight_format(BlockKind::kIq4Xs))->Apply(row_counts);

}  // namespace
}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
// Packing at load: bytes of the checkpoint a second, with the memory that the packed weight needs.
// The three layers of a gated MLP and an embedding of a model of 0.6 billion parameters.
#include "saker/kernels/storage/packed_weight.h"

#include <benchmark/benchmark.h>

#include <random>
#include <vector>

namespace saker::kernels {
namespace {

// Words with random bits where `mask` is set, no bits elsewhere but those of `bits`.
Tensor random_tensor(
    DType dtype, int rows, int columns, std::uint32_t mask = 0x77777777U, std::uint32_t bits = 0
) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = {rows, columns};
  auto words = std::make_shared<std::vector<std::uint32_t>>(tensor.nbytes() / 4 + 1);
  std::mt19937 random(static_cast<std::uint32_t>(rows + columns));
  for (std::uint32_t& word : *words) {
    word = (static_cast<std::uint32_t>(random()) & mask) | bits;
  }
  tensor.data =
      std::shared_ptr<const std::byte>(words, reinterpret_cast<const std::byte*>(words->data()));
  return tensor;
}

WeightTensors random_weight(int rows, int columns, const WeightFormat& format) {
  WeightTensors tensors;
  if (format.bits == 0) {
    const DType dtype = format.kind == WeightKind::kFloat32   ? DType::kFloat32
                        : format.kind == WeightKind::kFloat16 ? DType::kFloat16
                                                              : DType::kBFloat16;
    tensors.weight = random_tensor(dtype, rows, columns);
    return tensors;
  }
  const bool affine = format.kind == WeightKind::kAffine;
  tensors.weight = random_tensor(DType::kUInt32, rows, columns * format.bits / 32);
  const int groups = columns / format.group_size;
  if (affine) {
    tensors.scales = random_tensor(DType::kBFloat16, rows, groups);
    tensors.biases = tensors.scales;
  } else {
    // Neither tiny nor huge.
    tensors.scales = random_tensor(DType::kUInt8, rows, groups, 0x07070707U, 0x78787878U);
  }
  return tensors;
}

double file_bytes(const WeightTensors& tensors) {
  return static_cast<double>(
      tensors.weight.nbytes() + (tensors.scales ? tensors.scales->nbytes() : 0) +
      (tensors.biases ? tensors.biases->nbytes() : 0)
  );
}

void pack_weights(benchmark::State& state, const WeightFormat& format) {
  const WeightTensors layers[] = {
      random_weight(6144, 1024, format),
      random_weight(1024, 3072, format),
      random_weight(32768, 1024, format),
  };
  for (auto _ : state) {
    std::vector<PackedWeight> packed;
    for (const WeightTensors& layer : layers) {
      packed.push_back(PackedWeight::pack({layer}, format));
    }
    benchmark::DoNotOptimize(packed.data());
  }
  double bytes = 0;
  for (const WeightTensors& layer : layers) {
    bytes += file_bytes(layer);
  }
  state.counters["GB/s"] = benchmark::Counter(
      bytes * static_cast<double>(state.iterations()) / 1e9, benchmark::Counter::kIsRate
  );
}

constexpr auto kAffine = WeightKind::kAffine;
BENCHMARK_CAPTURE(pack_weights, f32, WeightFormat{WeightKind::kFloat32, 0, 0})->UseRealTime();
BENCHMARK_CAPTURE(pack_weights, f16, WeightFormat{WeightKind::kFloat16, 0, 0})->UseRealTime();
BENCHMARK_CAPTURE(pack_weights, bf16, WeightFormat{WeightKind::kBFloat16, 0, 0})->UseRealTime();
BENCHMARK_CAPTURE(pack_weights, q2, WeightFormat{kAffine, 2, 64})->UseRealTime();
BENCHMARK_CAPTURE(pack_weights, q3, WeightFormat{kAffine, 3, 64})->UseRealTime();
BENCHMARK_CAPTURE(pack_weights, q4, WeightFormat{kAffine, 4, 64})->UseRealTime();
BENCHMARK_CAPTURE(pack_weights, q4_group_32, WeightFormat{kAffine, 4, 32})->UseRealTime();
BENCHMARK_CAPTURE(pack_weights, q5, WeightFormat{kAffine, 5, 64})->UseRealTime();
BENCHMARK_CAPTURE(pack_weights, q6, WeightFormat{kAffine, 6, 64})->UseRealTime();
BENCHMARK_CAPTURE(pack_weights, q8, WeightFormat{kAffine, 8, 64})->UseRealTime();
BENCHMARK_CAPTURE(pack_weights, mxfp4, WeightFormat{WeightKind::kMxfp4, 4, 32})->UseRealTime();
BENCHMARK_CAPTURE(pack_weights, nvfp4, WeightFormat{WeightKind::kNvfp4, 4, 16})->UseRealTime();
BENCHMARK_CAPTURE(pack_weights, mxfp8, WeightFormat{WeightKind::kMxfp8, 8, 32})->UseRealTime();

}  // namespace
}  // namespace saker::kernels

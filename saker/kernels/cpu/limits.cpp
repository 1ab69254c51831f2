// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/cpu/limits.h"

#include "saker/kernels/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace saker::kernels {

namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 20U;
constexpr int kReadTiles = 256;
constexpr int kRounds = 5;
constexpr long kLoops = 1L << 20;
// Independent sums: enough to hide the latency of a multiply-add, few enough to stay in registers.
constexpr int kSums = 12;

std::atomic<std::uint64_t> sink;  // Keeps the loops' results alive.

template <typename Body>
double best_seconds(int tiles, Body&& body) {
  double best = 1e30;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    thread_pool().run(tiles, body);
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()
    );
  }
  return best;
}

double read_gbps() {
  const std::vector<std::uint64_t> memory(kReadBytes / sizeof(std::uint64_t), 1);
  const std::size_t tile_words = memory.size() / kReadTiles;
  const double seconds = best_seconds(kReadTiles, [&](int tile) {
    const std::uint64_t* words = memory.data() + static_cast<std::size_t>(tile) * tile_words;
    std::uint64_t sums[16] = {};
    for (std::size_t i = 0; i < tile_words; i += 16) {
      for (std::size_t lane = 0; lane < 16; ++lane) {
        sums[lane] ^= words[i + lane];
      }
    }
    for (const std::uint64_t sum : sums) {
      sink ^= sum;
    }
  });
  return static_cast<double>(kReadBytes) / seconds / 1e9;
}

// `loop` runs kLoops x kSums instructions of `operations` each, on every thread.
double giga_operations(void (*loop)(), double operations) {
  const int threads = thread_pool().size();
  // More tiles than threads, since a thread may join late.
  const int tiles = 4 * threads;
  const double seconds = best_seconds(tiles, [loop](int) { loop(); });
  return operations * kSums * static_cast<double>(kLoops) * tiles / seconds / 1e9;
}

#if defined(__x86_64__)

// The empty asm keeps a sum in its register and its updates in the loop.

__attribute__((target("avx2,fma"))) void fma_avx2() {
  __m256 sums[kSums];
  for (__m256& sum : sums) {
    sum = _mm256_setzero_ps();
  }
  const __m256 x = _mm256_set1_ps(1.0F);
  for (long i = 0; i < kLoops; ++i) {
#pragma GCC unroll 12
    for (__m256& sum : sums) {
      sum = _mm256_fmadd_ps(x, x, sum);
      asm volatile("" : "+x"(sum));
    }
  }
}

__attribute__((target("avx2"))) void int8_avx2() {
  __m256i sums[kSums];
  for (__m256i& sum : sums) {
    sum = _mm256_setzero_si256();
  }
  const __m256i x = _mm256_set1_epi8(1);
  for (long i = 0; i < kLoops; ++i) {
#pragma GCC unroll 12
    for (__m256i& sum : sums) {
      __m256i codes = x;
      asm volatile("" : "+x"(codes));  // Else the products would leave the loop.
      const __m256i pairs = _mm256_maddubs_epi16(codes, x);
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, x));
      asm volatile("" : "+x"(sum));
    }
  }
}

__attribute__((target("avx512f"))) void fma_avx512() {
  __m512 sums[kSums];
  for (__m512& sum : sums) {
    sum = _mm512_setzero_ps();
  }
  const __m512 x = _mm512_set1_ps(1.0F);
  for (long i = 0; i < kLoops; ++i) {
#pragma GCC unroll 12
    for (__m512& sum : sums) {
      sum = _mm512_fmadd_ps(x, x, sum);
      asm volatile("" : "+v"(sum));
    }
  }
}

__attribute__((target("avx512f,avx512bf16"))) void bf16_avx512() {
  __m512 sums[kSums];
  for (__m512& sum : sums) {
    sum = _mm512_setzero_ps();
  }
  const auto x = (__m512bh)_mm512_set1_epi16(0x3f80);
  for (long i = 0; i < kLoops; ++i) {
#pragma GCC unroll 12
    for (__m512& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, x, x);
      asm volatile("" : "+v"(sum));
    }
  }
}

__attribute__((target("avx512f,avx512vnni"))) void int8_avx512() {
  __m512i sums[kSums];
  for (__m512i& sum : sums) {
    sum = _mm512_setzero_si512();
  }
  const __m512i x = _mm512_set1_epi32(0x01010101);
  for (long i = 0; i < kLoops; ++i) {
#pragma GCC unroll 12
    for (__m512i& sum : sums) {
      sum = _mm512_dpbusd_epi32(sum, x, x);
      asm volatile("" : "+v"(sum));
    }
  }
}

void measure_compute(MachineLimits& limits) {
  if (__builtin_cpu_supports("avx512f")) {
    limits.f32_gflops = giga_operations(fma_avx512, 32);
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    limits.f32_gflops = giga_operations(fma_avx2, 16);
  }
  if (__builtin_cpu_supports("avx512bf16")) {
    limits.bf16_gflops = giga_operations(bf16_avx512, 64);
  }
  if (__builtin_cpu_supports("avx512vnni")) {
    limits.int8_gops = giga_operations(int8_avx512, 128);
  } else if (__builtin_cpu_supports("avx2")) {
    limits.int8_gops = giga_operations(int8_avx2, 64);
  }
}

#endif

}  // namespace

MachineLimits measure_limits() {
  MachineLimits limits;
  limits.read_gbps = read_gbps();
#if defined(__x86_64__)
  measure_compute(limits);
#endif
  return limits;
}

}  // namespace saker::kernels

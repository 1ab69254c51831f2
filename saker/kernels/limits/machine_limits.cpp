// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/limits/machine_limits.h"

#include "saker/base/instruction_set.h"
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/runtime/aligned_bytes.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/limits/amx_limit.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
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
  // Pages as large as those of weights, since page walks are not a limit of the machine.
  AlignedBytes memory(kReadBytes);
  std::memset(memory.data(), 1, memory.size());
  constexpr std::size_t kTileWords = kReadBytes / sizeof(std::uint64_t) / kReadTiles;
  const double seconds = best_seconds(kReadTiles, [&](int tile) {
    const auto* words = reinterpret_cast<const std::uint64_t*>(memory.data()) + tile * kTileWords;
    std::uint64_t sums[16] = {};
    for (std::size_t i = 0; i < kTileWords; i += 16) {
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

#if defined(__x86_64__) || defined(__aarch64__)

// Operations of one repeat_* call whose step does `operations`.
constexpr double repeated(double operations) {
  return operations * kSums * static_cast<double>(kLoops);
}

// Billions of operations per second of `loop`, which does `operations`, on all threads.
double giga_operations(void (*loop)(), double operations) {
  const int threads = thread_pool().size();
  // More tiles than threads, since a thread may join late.
  const int tiles = 4 * threads;
  const double seconds = best_seconds(tiles, [loop](int) { loop(); });
  return operations * tiles / seconds / 1e9;
}

#endif

#if defined(__x86_64__)

// Each struct is an instruction to measure: a register of sums, and a step that adds a product to
// each of its lanes.

struct FmaAvx2 {
  using Sums = __m256;

  [[gnu::always_inline, gnu::target("avx2,fma")]] static Sums step(Sums sums) {
    const __m256 x = _mm256_set1_ps(1.0F);
    return _mm256_fmadd_ps(x, x, sums);
  }
};

struct Int8Avx2 {
  using Sums = __m256i;

  [[gnu::always_inline, gnu::target("avx2")]] static Sums step(Sums sums) {
    const __m256i x = _mm256_set1_epi8(1);
    __m256i codes = x;
    asm volatile("" : "+x"(codes));  // Keeps the products in the loop.
    const __m256i pairs = _mm256_maddubs_epi16(codes, x);
    return _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, x));
  }
};

struct FmaAvx512 {
  using Sums = __m512;

  [[gnu::always_inline, gnu::target("avx512f")]] static Sums step(Sums sums) {
    const __m512 x = _mm512_set1_ps(1.0F);
    return _mm512_fmadd_ps(x, x, sums);
  }
};

struct Bf16Avx512 {
  using Sums = __m512;

  [[gnu::always_inline, gnu::target("avx512f,avx512bf16")]] static Sums step(Sums sums) {
    const auto x = (__m512bh)_mm512_set1_epi16(0x3f80);
    return _mm512_dpbf16_ps(sums, x, x);
  }
};

struct Int8Avx512 {
  using Sums = __m512i;

  [[gnu::always_inline, gnu::target("avx512f,avx512vnni")]] static Sums step(Sums sums) {
    const __m512i x = _mm512_set1_epi32(0x01010101);
    return _mm512_dpbusd_epi32(sums, x, x);
  }
};

// The empty asm keeps each register in place and its steps in the loop.

template <typename Instruction>
[[gnu::target("avx2,fma")]] void repeat_avx2() {
  typename Instruction::Sums registers[kSums] = {};
  for (long i = 0; i < kLoops; ++i) {
#pragma GCC unroll 12
    for (auto& sums : registers) {
      sums = Instruction::step(sums);
      asm volatile("" : "+x"(sums));
    }
  }
}

// Processors without BF16 or VNNI may run it too, with an Instruction that needs neither.
template <typename Instruction>
[[gnu::target("avx512f,avx512bf16,avx512vnni")]] void repeat_avx512() {
  typename Instruction::Sums registers[kSums] = {};
  for (long i = 0; i < kLoops; ++i) {
#pragma GCC unroll 12
    for (auto& sums : registers) {
      sums = Instruction::step(sums);
      asm volatile("" : "+v"(sums));
    }
  }
}

void measure_compute(MachineLimits& limits) {
  if (__builtin_cpu_supports("avx512f")) {
    limits.f32_gflops = giga_operations(repeat_avx512<FmaAvx512>, repeated(32));
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    limits.f32_gflops = giga_operations(repeat_avx2<FmaAvx2>, repeated(16));
  }
  if (__builtin_cpu_supports("avx512bf16")) {
    limits.bf16_gflops = giga_operations(repeat_avx512<Bf16Avx512>, repeated(64));
  }
#if defined(SAKER_HAS_AMX)
  if (kernel_table_name() == "amx") {
    limits.bf16_gflops = giga_operations(amx::multiply_tiles, amx::kTileOperations);
  }
#endif
  if (__builtin_cpu_supports("avx512vnni")) {
    limits.int8_gops = giga_operations(repeat_avx512<Int8Avx512>, repeated(128));
  } else if (__builtin_cpu_supports("avx2")) {
    limits.int8_gops = giga_operations(repeat_avx2<Int8Avx2>, repeated(64));
  }
}

#elif defined(__aarch64__)

struct FmaNeon {
  using Sums = float32x4_t;

  [[gnu::always_inline]] static Sums step(Sums sums) {
    const float32x4_t x = vdupq_n_f32(1.0F);
    return vfmaq_f32(sums, x, x);
  }
};

struct Bf16Neon {
  using Sums = float32x4_t;

  [[gnu::always_inline, gnu::target("arch=armv8.2-a+dotprod+bf16")]] static Sums step(Sums sums) {
    // Not a number that fits an instruction's immediate: g++ 12 would emit one that its assembler
    // rejects.
    const bfloat16x8_t x = vreinterpretq_bf16_u16(vdupq_n_u16(0x3f81));
    return vbfdotq_f32(sums, x, x);
  }
};

struct Int8Neon {
  using Sums = int32x4_t;

  [[gnu::always_inline, gnu::target("arch=armv8.2-a+dotprod+bf16")]] static Sums step(Sums sums) {
    const int8x16_t x = vdupq_n_s8(1);
    return vdotq_s32(sums, x, x);
  }
};

void repeat_fma() {
  float32x4_t registers[kSums] = {};
  for (long i = 0; i < kLoops; ++i) {
#pragma GCC unroll 12
    for (auto& sums : registers) {
      sums = FmaNeon::step(sums);
      asm volatile("" : "+w"(sums));
    }
  }
}

template <typename Instruction>
[[gnu::target("arch=armv8.2-a+dotprod+bf16")]] void repeat_dots() {
  typename Instruction::Sums registers[kSums] = {};
  for (long i = 0; i < kLoops; ++i) {
#pragma GCC unroll 12
    for (auto& sums : registers) {
      sums = Instruction::step(sums);
      asm volatile("" : "+w"(sums));
    }
  }
}

void measure_compute(MachineLimits& limits) {
  limits.f32_gflops = giga_operations(repeat_fma, repeated(8));
  if (runnable_sets().back() == InstructionSet::kNeonBf16) {
    limits.bf16_gflops = giga_operations(repeat_dots<Bf16Neon>, repeated(16));
    limits.int8_gops = giga_operations(repeat_dots<Int8Neon>, repeated(32));
  }
}

#endif

}  // namespace

MachineLimits measure_limits() {
  MachineLimits limits;
  limits.read_gbps = read_gbps();
#if defined(__x86_64__) || defined(__aarch64__)
  measure_compute(limits);
#endif
  return limits;
}

}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
// The loops of scan_loops.h for one instruction set.
#include "saker/sample/noise.h"
#include "saker/sample/scan_loops.h"

namespace saker::sample::SAKER_ISA {

namespace {

constexpr std::size_t kLanes = 16;
// Terms that are added in float32: 64 per lane.
constexpr std::size_t kMassBlock = 1024;
// Up to this many tokens of a block are not hashed here; the caller checks each.
constexpr std::size_t kFew = 8;
constexpr float kInfinity = __builtin_inff();

float max_of(const float* x, std::size_t count) {
  float best[2 * kLanes];
  for (std::size_t lane = 0; lane < 2 * kLanes; ++lane) {
    best[lane] = -kInfinity;
  }
  std::size_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    for (std::size_t lane = 0; lane < 2 * kLanes; ++lane) {
      best[lane] = x[i + lane] > best[lane] ? x[i + lane] : best[lane];
    }
  }
  for (std::size_t lane = 0; i < count; ++i, ++lane) {
    best[lane] = x[i] > best[lane] ? x[i] : best[lane];
  }
  for (std::size_t half = kLanes; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) {
      best[lane] = best[lane + half] > best[lane] ? best[lane + half] : best[lane];
    }
  }
  return best[0];
}

void block_maxima(const float* row, std::size_t count, float* maxima) {
  std::size_t i = 0;
  for (; i + kScanBlock <= count; i += kScanBlock) {
    *maxima++ = max_of(row + i, kScanBlock);
  }
  if (i < count) {
    *maxima = max_of(row + i, count - i);
  }
}

// An upper bound of 2^t for t <= 1, the smallest one for t <= -100. Between integers 2^f <= 1 + f,
// and that is a float whose bits grow linearly.
[[gnu::always_inline]] inline float power_bound(float t) {
  t = t > -100.0F ? t : -100.0F;
  t = t < 1.0F ? t : 1.0F;
  const auto bits = static_cast<std::int32_t>(t * 0x1p23F) + (127 << 23);
  return __builtin_bit_cast(float, bits);
}

// True if a token's noise can reach the line. The upper 24 bits of its hash are at most v.
[[gnu::always_inline]] inline bool reaches(const Contest& contest, float x, std::int32_t upper) {
  const float limit = power_bound((x - contest.max) * contest.slope + contest.offset);
  return static_cast<float>(upper) * 0x1p-24F <= limit;
}

// Flags are 0 or 1, so a word holds eight sums side by side.
std::size_t count_flags(const std::uint8_t* flags) {
  static_assert(kScanBlock < 256);
  std::uint64_t words[kScanBlock / sizeof(std::uint64_t)];
  __builtin_memcpy(words, flags, sizeof(words));
  std::uint64_t sums = 0;
  for (const std::uint64_t word : words) {
    sums += word;
  }
  return sums * 0x0101010101010101U >> 56U;
}

std::size_t contenders(
    const Contest& contest,
    const float* block,
    std::size_t count,
    std::uint64_t state,
    std::uint8_t* places
) {
  std::uint8_t flags[kScanBlock] = {};
  for (std::size_t i = 0; i < count; ++i) {
    flags[i] = block[i] >= contest.lower ? 1 : 0;
  }
  const std::size_t able = count_flags(flags);
  if (able > kFew) {
    std::int32_t upper[kScanBlock];
    for (std::size_t i = 0; i < kScanBlock; ++i) {
      upper[i] = static_cast<std::int32_t>(Noise::mix(state + i * Noise::kStep) >> 40U);
    }
    for (std::size_t i = 0; i < count; ++i) {
      flags[i] &= static_cast<std::uint8_t>(reaches(contest, block[i], upper[i]));
    }
  }
  std::size_t found = 0;
  for (std::size_t i = 0; able > 0 && i < kScanBlock; i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    __builtin_memcpy(&word, flags + i, sizeof(word));
    for (; word != 0; word &= word - 1) {
      places[found++] = static_cast<std::uint8_t>(i + __builtin_ctzll(word) / 8U);
    }
  }
  return found;
}

// e^d for -87 <= d <= 0, e^-87 below and for NaN: 2^n times the Taylor polynomial of degree 6.
[[gnu::always_inline]] inline float rough_exp(float d) {
  constexpr float kRound = 0x1.8p+23F;  // Adding it rounds to an integer, kept in the low bits.
  d = d > -87.0F ? d : -87.0F;
  const float shifted = d * 0x1.715476p+0F + kRound;
  const float n = shifted - kRound;
  const float r = (d - n * 0x1.62e4p-1F) - n * 0x1.7f7d1cp-20F;
  float p = 1.0F / 720.0F;
  p = p * r + 1.0F / 120.0F;
  p = p * r + 1.0F / 24.0F;
  p = p * r + 1.0F / 6.0F;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const std::uint32_t power = (__builtin_bit_cast(std::uint32_t, shifted) + 127U) << 23U;
  return p * __builtin_bit_cast(float, power);
}

// Sums kMassBlock terms in float32, and these sums in float64.
struct MassLanes {
  float block[kLanes] = {};
  double total[kLanes] = {};

  [[gnu::always_inline]] void end_block() {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      total[lane] += static_cast<double>(block[lane]);
      block[lane] = 0.0F;
    }
  }

  [[gnu::always_inline]] double sum() const {
    double result = 0.0;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      result += total[lane];
    }
    return result;
  }
};

RoughMass mass(const float* row, std::size_t count, float max, float above, float well_above) {
  MassLanes all;
  MassLanes over;
  MassLanes well_over;
  const auto add = [&](float x, std::size_t lane) __attribute__((always_inline)) {
    const float term = rough_exp(x - max);
    all.block[lane] += term;
    over.block[lane] += x > above ? term : 0.0F;
    well_over.block[lane] += x > well_above ? term : 0.0F;
  };
  std::size_t i = 0;
  while (i < count) {
    const std::size_t end = i + kMassBlock < count ? i + kMassBlock : count;
    for (; i + kLanes <= end; i += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        add(row[i + lane], lane);
      }
    }
    for (std::size_t lane = 0; i < end; ++i, ++lane) {
      add(row[i], lane);
    }
    all.end_block();
    over.end_block();
    well_over.end_block();
  }
  return {all.sum(), over.sum(), well_over.sum()};
}

}  // namespace

extern const ScanLoops scan_loops_bodies;
const ScanLoops scan_loops_bodies = {
    .block_maxima = block_maxima, .contenders = contenders, .mass = mass
};

}  // namespace saker::sample::SAKER_ISA

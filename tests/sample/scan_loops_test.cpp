// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/scan_loops.h"

#include "saker/sample/noise.h"

#include "tests/support/each_instruction_set.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace saker::sample {

namespace portable {
extern const ScanLoops scan_loops_bodies;
}

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_row(std::size_t size, double spread, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(0.0, spread);
  std::vector<float> row(size);
  for (float& x : row) {
    x = static_cast<float>(normal(random));
    if (random() % 40 == 0) {
      x = random() % 2 == 0 ? kNaN : -kInfinity;
    }
  }
  return row;
}

float max_of(const std::vector<float>& row) {
  float max = -kInfinity;
  for (const float x : row) {
    max = x > max ? x : max;
  }
  return max;
}

TEST(ScanLoops, MaximaOfBlocks) {
  for (const std::size_t size : {1U, 31U, 128U, 129U, 500U, 1024U}) {
    const auto row = random_row(size, 3.0, static_cast<std::uint32_t>(size));
    std::vector<float> maxima((size + kScanBlock - 1) / kScanBlock);
    scan_loops().block_maxima(row.data(), size, maxima.data());
    for (std::size_t i = 0; i < maxima.size(); ++i) {
      const auto first = row.begin() + static_cast<std::ptrdiff_t>(i * kScanBlock);
      const auto last =
          row.begin() + static_cast<std::ptrdiff_t>(std::min(size, (i + 1) * kScanBlock));
      EXPECT_EQ(maxima[i], max_of({first, last}));
    }
  }
}

// None that can win is missing, and of the others few come along.
TEST(ScanLoops, ContendersAreThoseWhoseNoiseReaches) {
  std::size_t found = 0;
  std::size_t needed = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    const std::size_t size = seed % 3 == 0 ? 77 : kScanBlock;
    const auto row = random_row(size, 4.0, seed);
    const Noise noise(seed, 0, 0, NoiseRole::kToken);
    const float max = max_of(row);
    const float lower = seed % 2 == 0 ? max - 9.0F : std::numeric_limits<float>::lowest();
    const float offset = 0.25F * static_cast<float>(seed % 40) - 4.0F;
    std::uint8_t places[kScanBlock];
    const std::size_t count = scan_loops().contenders(
        {lower, max, 1.5F, offset}, row.data(), size, noise.state(1000), places
    );
    for (std::size_t i = 0; i < size; ++i) {
      const double v = Noise::to_uniform(noise.bits(1000 + static_cast<std::int32_t>(i)));
      const double reach = 1.5 * (static_cast<double>(row[i]) - static_cast<double>(max)) +
                           static_cast<double>(offset);
      if (row[i] >= lower && std::log2(v) <= reach) {
        ++needed;
        EXPECT_TRUE(std::find(places, places + count, i) != places + count) << seed << " " << i;
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_GE(row[places[i]], lower);
      EXPECT_TRUE(i == 0 || places[i] > places[i - 1]);
    }
    found += count;
  }
  EXPECT_GT(needed, 1000U);
  EXPECT_LT(found, needed + needed / 4 + 2000);
}

// Against sums in float64.
void expect_mass(const std::vector<float>& row, double spread) {
  const float max = max_of(row);
  const float above = max - static_cast<float>(spread);
  const RoughMass mass =
      scan_loops().mass(row.data(), row.size(), max, above, std::nextafter(max, -kInfinity));
  double all = 0.0;
  double over = 0.0;
  double allowed = 1e-30;
  for (const float x : row) {
    if (!(x > -kInfinity)) {
      continue;
    }
    const double below = static_cast<double>(max) - static_cast<double>(x);
    all += std::exp(-below);
    over += x > above ? std::exp(-below) : 0.0;
    allowed += std::exp(-below) * (1e-7 * std::min(below, 87.0) + 6e-6);
  }
  EXPECT_NEAR(mass.all, all, allowed);
  EXPECT_NEAR(mass.above, over, allowed);
  EXPECT_EQ(mass.well_above, 1.0);
}

TEST(ScanLoops, MassWithinItsError) {
  for (const double spread : {0.1, 2.0, 10.0, 60.0}) {
    for (const std::size_t size : {5U, 128U, 3001U, 20000U}) {
      expect_mass(random_row(size, spread, static_cast<std::uint32_t>(size)), spread);
    }
  }
}

TEST(ScanLoops, EveryInstructionSetGivesTheSameBits) {
  testing::for_each_instruction_set([](InstructionSet /*set*/) {
    const ScanLoops& best = scan_loops();
    const ScanLoops& plain = portable::scan_loops_bodies;
    for (std::uint32_t seed = 0; seed < 300; ++seed) {
      const auto row = random_row(1 + seed * 7, 0.1 * seed, seed);
      const float max = max_of(row);
      if (max == -kInfinity) {
        continue;
      }
      const RoughMass a = best.mass(row.data(), row.size(), max, max - 3.0F, max - 1.0F);
      const RoughMass b = plain.mass(row.data(), row.size(), max, max - 3.0F, max - 1.0F);
      EXPECT_EQ(std::bit_cast<std::uint64_t>(a.all), std::bit_cast<std::uint64_t>(b.all));
      EXPECT_EQ(std::bit_cast<std::uint64_t>(a.above), std::bit_cast<std::uint64_t>(b.above));
      EXPECT_EQ(a.well_above, b.well_above);
      const std::size_t size = std::min(kScanBlock, row.size());
      const Contest contest = {max - 20.0F, max, 1.2F, -0.01F * static_cast<float>(seed)};
      std::uint8_t places[2][kScanBlock];
      const std::size_t count = best.contenders(contest, row.data(), size, seed, places[0]);
      ASSERT_EQ(plain.contenders(contest, row.data(), size, seed, places[1]), count);
      EXPECT_TRUE(std::equal(places[0], places[0] + count, places[1]));
    }
  });
}

}  // namespace
}  // namespace saker::sample

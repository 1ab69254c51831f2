// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/noise.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

namespace saker::sample {
namespace {

// Persistent: a seed gives the same text in later versions and on other machines.
TEST(Noise, KnownVectors) {
  const Noise zero(0, 0, 0, NoiseRole::kToken);
  const Noise other(42, 1, 1000, NoiseRole::kXtc);
  EXPECT_EQ(zero.bits(0), 0x2ce809ae01cab7d7U);
  EXPECT_EQ(zero.bits(1), 0x7924ac0fed68cb52U);
  EXPECT_EQ(zero.bits(151935), 0xd323f332c61752e7U);
  EXPECT_EQ(other.bits(0), 0xa13f2ab5dad1572aU);
  EXPECT_EQ(
      std::bit_cast<std::uint64_t>(Noise::to_gumbel(0x0123456789abcdefU)), 0x4015a7ce99960a14U
  );
  EXPECT_EQ(
      std::bit_cast<std::uint64_t>(Noise::to_gumbel(0xfedcba9876543210U)), 0xbffb07af34a6048fU
  );
}

TEST(Noise, EveryPartOfTheKeyMatters) {
  const std::vector<Noise> streams = {
      {1, 0, 0, NoiseRole::kToken},
      {2, 0, 0, NoiseRole::kToken},
      {1, 1, 0, NoiseRole::kToken},
      {1, 0, 1, NoiseRole::kToken},
      {1, 0, 0, NoiseRole::kXtc},
      {0, 1, 0, NoiseRole::kToken},
      {0, 0, 1, NoiseRole::kToken},
      {~std::uint64_t{0}, 0, 0, NoiseRole::kToken},
  };
  std::set<std::uint64_t> seen;
  for (const Noise& stream : streams) {
    for (std::int32_t id = 0; id < 1000; ++id) {
      EXPECT_TRUE(seen.insert(stream.bits(id)).second);
    }
  }
}

// Chi-square over 256 cells: mean 255, standard deviation 22.6.
double chi_square(const std::array<int, 256>& counts, double expected) {
  double sum = 0.0;
  for (const int count : counts) {
    sum += (count - expected) * (count - expected) / expected;
  }
  return sum;
}

TEST(Noise, UniformOverIdsPositionsAndSeeds) {
  constexpr int kDraws = 1 << 18;
  std::array<int, 256> by_id{};
  std::array<int, 256> by_position{};
  std::array<int, 256> by_seed{};
  const Noise ids(7, 0, 123, NoiseRole::kToken);
  for (int i = 0; i < kDraws; ++i) {
    ++by_id[static_cast<std::size_t>(Noise::to_uniform(ids.bits(i)) * 256.0)];
    ++by_position[Noise(7, 0, i, NoiseRole::kToken).bits(5) >> 56U];
    ++by_seed[Noise(static_cast<std::uint64_t>(i), 0, 9, NoiseRole::kToken).bits(5) >> 56U];
  }
  for (const auto& counts : {by_id, by_position, by_seed}) {
    EXPECT_LT(chi_square(counts, kDraws / 256.0), 255.0 + 5 * 22.6);
    EXPECT_GT(chi_square(counts, kDraws / 256.0), 255.0 - 5 * 22.6);
  }
}

// Neighbours in id and in position: 16 x 16 cells of pairs, and no correlation.
TEST(Noise, NeighboursAreIndependent) {
  constexpr int kDraws = 1 << 18;
  std::array<int, 256> id_pairs{};
  std::array<int, 256> position_pairs{};
  double correlation = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const Noise here(3, 0, i, NoiseRole::kToken);
    const Noise next(3, 0, i + 1, NoiseRole::kToken);
    ++id_pairs[(here.bits(10) >> 60U) * 16 + (here.bits(11) >> 60U)];
    ++position_pairs[(here.bits(10) >> 60U) * 16 + (next.bits(10) >> 60U)];
    correlation +=
        (Noise::to_uniform(here.bits(10)) - 0.5) * (Noise::to_uniform(next.bits(10)) - 0.5);
  }
  EXPECT_LT(chi_square(id_pairs, kDraws / 256.0), 255.0 + 5 * 22.6);
  EXPECT_LT(chi_square(position_pairs, kDraws / 256.0), 255.0 + 5 * 22.6);
  // Standard deviation of the mean: 1/12 / sqrt(draws).
  EXPECT_LT(std::abs(correlation / kDraws), 5.0 / 12.0 / std::sqrt(kDraws));
}

TEST(Noise, GumbelHasItsMeanAndVariance) {
  constexpr int kDraws = 1 << 18;
  const Noise noise(11, 0, 0, NoiseRole::kToken);
  double sum = 0.0;
  double squares = 0.0;
  for (int i = 0; i < kDraws; ++i) {
    const double g = Noise::to_gumbel(noise.bits(i));
    sum += g;
    squares += g * g;
  }
  const double mean = sum / kDraws;
  EXPECT_NEAR(mean, 0.57721566, 0.0125);                          // Euler's constant, 5 sigma.
  EXPECT_NEAR(squares / kDraws - mean * mean, 1.64493407, 0.04);  // pi^2 / 6.
}

TEST(Noise, BoundIsAboveTheNoiseAndTheExtremesAreFinite) {
  const Noise noise(5, 0, 0, NoiseRole::kToken);
  for (std::int32_t id = 0; id < 100000; ++id) {
    const std::uint64_t bits = noise.bits(id) >> (id % 64);
    EXPECT_GE(Noise::gumbel_bound(bits), Noise::to_gumbel(bits));
  }
  EXPECT_GE(Noise::gumbel_bound(0), Noise::to_gumbel(0));
  EXPECT_NEAR(Noise::to_gumbel(0), 36.74, 0.01);
  EXPECT_NEAR(Noise::to_gumbel(~std::uint64_t{0}), -3.603, 0.01);
}

}  // namespace
}  // namespace saker::sample

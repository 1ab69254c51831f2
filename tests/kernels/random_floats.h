// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace saker::kernels {

// Standard normal numbers times `scale`, the same in every run.
inline std::vector<float> normal_floats(std::size_t count, std::uint64_t seed, float scale = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0F, scale);
  std::vector<float> floats(count);
  for (float& value : floats) {
    value = normal(random);
  }
  return floats;
}

}  // namespace saker::kernels

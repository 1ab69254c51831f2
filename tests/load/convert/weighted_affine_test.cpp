// SPDX-License-Identifier: Apache-2.0
#include "saker/load/convert/weighted_affine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace saker::load {
namespace {

using kernels::AffineLine;

constexpr std::array<DType, 3> kDTypes{DType::kFloat32, DType::kFloat16, DType::kBFloat16};

struct WeightedGroup {
  std::vector<float> values;
  std::vector<float> importance;
};

struct AffineCodes {
  AffineLine line{};
  std::vector<std::uint8_t> codes;
};

std::vector<float> numbers_of(DType dtype, std::vector<float> values) {
  const kernels::QuantizeLoops& loops = kernels::quantize_loops();
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  loops.narrow(values.data(), dtype, values.size(), bytes.data());
  loops.widen(bytes.data(), dtype, values.size(), values.data());
  return values;
}

WeightedGroup random_group(DType dtype, std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.01F, 0.05F);
  std::lognormal_distribution<float> amount(0.0F, 1.0F);
  WeightedGroup group;
  for (std::size_t i = 0; i < size; ++i) {
    group.values.push_back(normal(random));
    group.importance.push_back(amount(random));
  }
  group.values = numbers_of(dtype, std::move(group.values));
  return group;
}

AffineCodes plain_codes(DType dtype, int bits, const WeightedGroup& group) {
  AffineCodes result{.codes = std::vector<std::uint8_t>(group.values.size())};
  result.line = kernels::quantize_loops().encode_group(
      dtype, bits, group.values.data(), group.values.size(), result.codes.data()
  );
  return result;
}

AffineCodes weighted_codes(DType dtype, int bits, const WeightedGroup& group) {
  AffineCodes result{.codes = std::vector<std::uint8_t>(group.values.size())};
  result.line = weighted_line(dtype, bits, group.values, group.importance, result.codes.data());
  return result;
}

double error_of(const WeightedGroup& group, const AffineCodes& coded) {
  double sum = 0.0;
  for (std::size_t i = 0; i < group.values.size(); ++i) {
    const double value = static_cast<double>(coded.line.scale) * coded.codes[i] +
                         static_cast<double>(coded.line.bias);
    const double miss = value - static_cast<double>(group.values[i]);
    sum += static_cast<double>(group.importance[i]) * miss * miss;
  }
  return sum;
}

double largest_miss(const WeightedGroup& group, const AffineCodes& coded) {
  double most = 0.0;
  for (std::size_t i = 0; i < group.values.size(); ++i) {
    const double value = static_cast<double>(coded.line.scale) * coded.codes[i] +
                         static_cast<double>(coded.line.bias);
    most = std::max(most, std::fabs(value - static_cast<double>(group.values[i])));
  }
  return most;
}

TEST(WeightedAffineTest, NoGroupLosesMoreThanPlainCodes) {
  for (const DType dtype : kDTypes) {
    for (const int bits : {2, 3, 4, 5, 6, 8}) {
      for (const std::size_t size : {32U, 64U, 128U}) {
        double weighted = 0.0;
        double plain = 0.0;
        for (unsigned seed = 0; seed < 20; ++seed) {
          const WeightedGroup group = random_group(dtype, size, seed);
          const double one = error_of(group, weighted_codes(dtype, bits, group));
          const double other = error_of(group, plain_codes(dtype, bits, group));
          // Each column counts a bit more than their importance says.
          EXPECT_LE(one, other * 1.001) << bits << " " << size << " " << seed;
          weighted += one;
          plain += other;
        }
        EXPECT_LT(weighted, 0.8 * plain) << bits << " bits, group " << size;
      }
    }
  }
}

TEST(WeightedAffineTest, LinesAreNumbersOfTheDtypeAndCodesHaveTheirBits) {
  for (const DType dtype : kDTypes) {
    for (const int bits : {2, 3, 4, 5, 6, 8}) {
      const WeightedGroup group = random_group(dtype, 64, 7);
      const AffineCodes coded = weighted_codes(dtype, bits, group);
      const std::vector<float> line{coded.line.scale, coded.line.bias};
      EXPECT_EQ(numbers_of(dtype, line), line);
      EXPECT_LT(*std::ranges::max_element(coded.codes), 1 << bits);
    }
  }
}

TEST(WeightedAffineTest, ValuesOnAGridStay) {
  for (const DType dtype : kDTypes) {
    for (const int bits : {2, 3, 4}) {
      WeightedGroup group{.values = {}, .importance = std::vector<float>(64, 1.0F)};
      const int codes = 1 << bits;
      for (int i = 0; i < 64; ++i) {
        group.values.push_back(0.25F * static_cast<float>(i * 7 % codes) - 0.75F);
      }
      EXPECT_EQ(largest_miss(group, weighted_codes(dtype, bits, group)), 0.0) << bits;
    }
  }
}

TEST(WeightedAffineTest, GroupsOfOneValueStay) {
  for (const DType dtype : kDTypes) {
    for (const float value : {0.0F, 1.0F, -0.375F, 60000.0F, 0x1p-20F, -0x1p-24F}) {
      const WeightedGroup group{
          .values = numbers_of(dtype, std::vector<float>(32, value)),
          .importance = std::vector<float>(32, 0.5F),
      };
      EXPECT_EQ(largest_miss(group, weighted_codes(dtype, 4, group)), 0.0) << value;
    }
  }
}

TEST(WeightedAffineTest, SizesOfValuesAndImportanceDoNotMatter) {
  const WeightedGroup usual = random_group(DType::kBFloat16, 64, 3);
  const double relative = largest_miss(usual, weighted_codes(DType::kBFloat16, 4, usual));
  for (const float factor : {0x1p-110F, 0x1p-60F, 0x1p60F, 0x1p120F}) {
    for (const float amount : {0x1p-120F, 1.0F, 0x1p120F}) {
      WeightedGroup group = usual;
      std::ranges::for_each(group.values, [&](float& value) { value *= factor; });
      std::ranges::for_each(group.importance, [&](float& one) { one *= amount; });
      const double miss = largest_miss(group, weighted_codes(DType::kBFloat16, 4, group));
      EXPECT_LT(miss / static_cast<double>(factor), 1.1 * relative) << factor << " " << amount;
    }
  }
}

TEST(WeightedAffineTest, LargestNumbersHaveFiniteLines) {
  for (const float most : {3e38F, 60000.0F}) {
    const DType dtype = most > 1e30F ? DType::kBFloat16 : DType::kFloat16;
    WeightedGroup group = random_group(dtype, 32, 5);
    group.values[3] = most;
    group.values[4] = -most;
    group.values = numbers_of(dtype, group.values);
    const AffineCodes coded = weighted_codes(dtype, 4, group);
    EXPECT_TRUE(std::isfinite(coded.line.scale) && std::isfinite(coded.line.bias)) << most;
  }
}

TEST(WeightedAffineTest, ColumnsWithoutImportanceCountLittle) {
  WeightedGroup group = random_group(DType::kBFloat16, 64, 11);
  group.values[9] = 0.75F;  // Without it codes are far closer.
  const double with_it = error_of(group, weighted_codes(DType::kBFloat16, 4, group));
  group.importance[9] = 0.0F;
  const double without = error_of(group, weighted_codes(DType::kBFloat16, 4, group));
  EXPECT_LT(without, 0.5 * with_it);
  std::ranges::fill(group.importance, 0.0F);
  const AffineCodes none = weighted_codes(DType::kBFloat16, 4, group);
  std::ranges::fill(group.importance, 2.0F);
  EXPECT_EQ(none.codes, weighted_codes(DType::kBFloat16, 4, group).codes);
}

TEST(WeightedAffineTest, StreamsHoldTheCodes) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    const kernels::WeightFormat format{kernels::WeightKind::kAffine, bits, 64};
    const WeightedGroup group = random_group(DType::kFloat16, 64, 1);
    std::vector<std::byte> codes(static_cast<std::size_t>(8 * bits));
    std::array<std::byte, 2> scale{};
    std::array<std::byte, 2> bias{};
    encode_weighted(
        format,
        DType::kFloat16,
        group.values,
        group.importance,
        {.codes = codes.data(), .scales = scale.data(), .biases = bias.data()}
    );
    std::vector<float> decoded(64);
    kernels::quantize_loops().decode(
        format,
        DType::kFloat16,
        {.codes = codes.data(),
         .scales = scale.data(),
         .biases = bias.data(),
         .dtype = DType::kFloat16},
        64,
        decoded.data()
    );
    const AffineCodes coded = weighted_codes(DType::kFloat16, bits, group);
    for (std::size_t i = 0; i < 64; ++i) {
      const float value = coded.line.scale * static_cast<float>(coded.codes[i]) + coded.line.bias;
      EXPECT_NEAR(decoded[i], value, 2e-3F * std::fabs(value) + 2e-4F) << bits;
    }
  }
}

}  // namespace
}  // namespace saker::load

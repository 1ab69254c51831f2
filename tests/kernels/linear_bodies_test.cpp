// SPDX-License-Identifier: Apache-2.0
// Products of every format in every instruction set, without MLX.
#include "saker/kernels/cpu/dispatch/linear_bodies.h"

#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/multiply.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/kernels/packing/pack.h"
#include "saker/kernels/packing/weight_bytes.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/random_floats.h"
#include "tests/kernels/random_weights.h"
#include "tests/kernels/same_bits.h"
#include "tests/kernels/true_products.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace saker::kernels {
namespace {

// A random weight, packed for the set in use; or with codes as wide as products read them.
class Weight {
 public:
  Weight(
      const WeightFormat& format, int rows, int columns, std::uint64_t seed, bool is_wide = false
  )
      : Weight(format, rows, columns, random_weight(format, rows, columns, seed), is_wide) {}

  Weight(
      const WeightFormat& format,
      int rows,
      int columns,
      const WeightTensors& tensors,
      bool is_wide = false
  ) {
    const DType scales = (tensors.scales ? *tensors.scales : tensors.weight).dtype;
    matrix_ = packed_layout(rows, columns, format, scales, kernel_table().linear->orders);
    if (is_wide) {
      matrix_.code_bits = matrix_.field_bits();
    }
    bytes_ =
        allocate_weight_bytes(static_cast<std::size_t>(matrix_.blocks()) * matrix_.block_bytes());
    matrix_.data = bytes_.get();
    pack_rows({tensors}, format, matrix_, bytes_.get());
  }

  int rows() const { return matrix_.rows; }

  int columns() const { return matrix_.columns; }

  bool is_narrow() const { return matrix_.is_narrow(); }

  // As float32 [rows, columns].
  std::vector<float> values() const {
    std::vector<float> values(static_cast<std::size_t>(rows()) * columns());
    for (int row = 0; row < rows(); ++row) {
      unpack_row(matrix_, row, values.data() + static_cast<std::size_t>(row) * columns());
    }
    return values;
  }

  // Rows [first, first + count) of x times it.
  std::vector<float> times(
      const std::vector<float>& x, int first, int count, const float* bias = nullptr
  ) const {
    std::vector<float> y(static_cast<std::size_t>(count) * rows());
    const float* from = x.data() + static_cast<std::size_t>(first) * columns();
    const RowProduct product = {&matrix_, {from, columns(), 1, count}, bias, y.data()};
    multiply_rows(*kernel_table().linear, {&product, 1});
    return y;
  }

 private:
  PackedMatrix matrix_;
  std::shared_ptr<std::byte> bytes_;
};

std::vector<float> random_x(int rows, int columns, std::uint64_t seed) {
  return normal_floats(static_cast<std::size_t>(rows) * columns, seed);
}

class LinearBodiesTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { select_kernel_table(GetParam()); }

  void TearDown() override { thread_pool().resize(2); }
};

INSTANTIATE_TEST_SUITE_P(
    Sets,
    LinearBodiesTest,
    testing::ValuesIn(instruction_sets()),
    [](const auto& set) { return set.param; }
);

TEST_P(LinearBodiesTest, IsNearTheTruth) {
  std::mt19937 random(3);  // NOLINT: the same in every run.
  for (const WeightFormat& format : all_formats()) {
    for (const int count : {1, 2, 3, 4, 5, 6, 7, 13}) {
      const int unit = column_unit(format);
      const auto most = static_cast<unsigned>((count < 5 ? 300 : 3000) / unit);
      const int columns = unit * static_cast<int>(1 + random() % most);
      const Weight weight(format, static_cast<int>(1 + random() % 70), columns, random());
      const auto x = random_x(count, columns, random());
      const auto bias = normal_floats(static_cast<std::size_t>(weight.rows()), 1);
      const auto y = weight.times(x, 0, count, bias.data());
      const auto truth =
          true_products(x, weight.values(), columns, linear_rounding(GetParam(), format));
      for (std::size_t i = 0; i < y.size(); ++i) {
        const float added = bias[i % bias.size()];
        const double limit = truth.limits[i] + 0x1p-23 * std::abs(y[i]);
        ASSERT_NEAR(y[i], truth.sums[i] + added, limit) << format_name(format) << " at " << i;
      }
    }
  }
}

// What the roundings of normal inputs leave of the results, and float32 sums: integers are finer
// than bf16.
TEST_P(LinearBodiesTest, RoundsInputsNoCoarserThanItSays) {
  for (const WeightFormat& format :
       {WeightFormat{WeightKind::kAffine, 4, 64},
        WeightFormat{WeightKind::kAffine, 8, 64},
        WeightFormat{WeightKind::kMxfp4, 4, 32},
        WeightFormat{WeightKind::kNvfp4, 4, 16}}) {
    const Rounding rounding = linear_rounding(GetParam(), format);
    const Weight weight(format, 64, 1024, 3);
    const auto x = random_x(20, 1024, 5);
    const auto truth = true_products(x, weight.values(), 1024, rounding);
    const auto y = weight.times(x, 0, 20);
    double size = 0;
    double error = 0;
    for (std::size_t i = 0; i < y.size(); ++i) {
      size += truth.sums[i] * truth.sums[i];
      error += (y[i] - truth.sums[i]) * (y[i] - truth.sums[i]);
    }
    const double limits[] = {1e-6, 3e-3, 3e-5};  // kNone, kBf16, kInt16
    EXPECT_LT(std::sqrt(error / size), limits[static_cast<int>(rounding)]) << format_name(format);
  }
}

void expect_same_bits_in_sets_of_integers(const WeightFormat& format, int count) {
  const int columns = 11 * column_unit(format);
  const auto x = random_x(count, columns, 5);
  std::vector<float> expected;
  for (const std::string& set : instruction_sets()) {
    if (linear_rounding(set, format) != Rounding::kInt16) {
      continue;
    }
    select_kernel_table(set);
    const auto y = Weight(format, 150, columns, 7).times(x, 0, count);
    if (expected.empty()) {
      expected = y;
    }
    EXPECT_TRUE(same_bits(y.data(), expected.data(), y.size()))
        << set << ", " << format_name(format) << ", " << count << " rows";
  }
}

// Sums of integers have no order: sets that take inputs as such agree on affine codes.
TEST(LinearBodies, AffineCodesGiveTheSameBitsInSetsOfIntegers) {
  for (const WeightFormat& format : all_formats()) {
    for (const int count : {1, 5, 6, 9, 16, 40}) {
      if (format.kind == WeightKind::kAffine || is_block(format.kind)) {
        expect_same_bits_in_sets_of_integers(format, count);
      }
    }
  }
}

// All codes and all inputs as large as they get, of either sign, and inputs of any size.
TEST_P(LinearBodiesTest, LargestSumsOfCodesFit) {
  const WeightFormat format = {WeightKind::kAffine, 8, 128};
  WeightTensors tensors = random_weight(format, 20, 256, 3);
  const auto codes = std::make_shared<std::vector<std::byte>>(20 * 256, std::byte{255});
  tensors.weight.data = std::shared_ptr<const std::byte>(codes, codes->data());
  const Weight weight(format, 20, 256, tensors);
  for (const float size : {1.0F, -1.0F, 1e-30F, 1e25F, 1e-44F}) {
    for (const int rows : {4, 20, 40}) {
      const std::vector<float> x(static_cast<std::size_t>(rows) * 256, size);
      const auto y = weight.times(x, 0, rows);
      const auto truth =
          true_products(x, weight.values(), 256, linear_rounding(GetParam(), format));
      for (std::size_t i = 0; i < y.size(); ++i) {
        ASSERT_NEAR(y[i], truth.sums[i], truth.limits[i] + 1e-30) << size << " at " << i;
      }
    }
  }
}

// The bits of a row are those of the row alone, whatever rows, chunks and threads.
TEST_P(LinearBodiesTest, RowsAreIndependent) {
  std::mt19937 random(5);  // NOLINT: the same in every run.
  const auto below = [&](unsigned limit) { return static_cast<int>(random() % limit); };
  for (const WeightFormat& format : all_formats()) {
    const int unit = column_unit(format);
    const Weight weight(format, 1 + below(90), unit * (1 + below(600U / unit)), random());
    const int count = 1 + below(40);
    const auto x = random_x(count, weight.columns(), random());
    thread_pool().resize(1 + below(4));
    const auto together = weight.times(x, 0, count);
    thread_pool().resize(1 + below(4));
    for (int first = 0; first < count;) {
      const int part = 1 + below(static_cast<unsigned>(count - first));
      const auto alone = weight.times(x, first, part);
      const float* expected = together.data() + static_cast<std::size_t>(first) * weight.rows();
      ASSERT_TRUE(same_bits(alone.data(), expected, alone.size())) << format_name(format);
      first += part;
    }
    const int row = below(static_cast<unsigned>(count));
    const auto alone = weight.times(x, row, 1);
    const float* expected = together.data() + static_cast<std::size_t>(row) * weight.rows();
    ASSERT_TRUE(same_bits(alone.data(), expected, alone.size())) << format_name(format);
  }
}

// More rows than a tile keeps close, more columns than are summed at once.
TEST_P(LinearBodiesTest, RowsOfLargeProductsAreIndependent) {
  constexpr int kColumns = 2 * 1024 + 64;
  constexpr int kRows = 530;
  const auto x = random_x(kRows, kColumns, 31);
  for (const WeightFormat& format :
       {WeightFormat{WeightKind::kBFloat16, 0, 0},
        WeightFormat{WeightKind::kAffine, 4, 64},
        WeightFormat{WeightKind::kAffine, 8, 32},
        WeightFormat{WeightKind::kMxfp4, 4, 32},
        weight_format(BlockKind::kQ50)}) {
    const Weight weight(format, 150, kColumns, 32);
    const auto together = weight.times(x, 0, kRows);
    for (const int count : {1, 2, 3, 4, 12, 13, 17, 32, 33, 100}) {
      const int first = kRows - count;
      const auto alone = weight.times(x, first, count);
      const float* expected = together.data() + static_cast<std::size_t>(first) * weight.rows();
      ASSERT_TRUE(same_bits(alone.data(), expected, alone.size()))
          << format_name(format) << ", " << count << " rows";
    }
  }
}

TEST_P(LinearBodiesTest, NarrowCodesGiveTheBitsOfWholeFields) {
  std::mt19937 random(11);
  const auto below = [&random](unsigned end) { return static_cast<int>(random() % end); };
  for (const WeightFormat& format : all_formats()) {
    if (format.kind != WeightKind::kAffine) {
      continue;
    }
    const int unit = format.group_size;
    for (int trial = 0; trial < 4; ++trial) {
      const int rows = 1 + below(90);
      const int columns = unit * (1 + below(static_cast<unsigned>(700 / unit)));
      const std::uint64_t seed = random();
      const Weight narrow(format, rows, columns, seed);
      const Weight wide(format, rows, columns, seed, true);
      if (!narrow.is_narrow()) {
        break;
      }
      EXPECT_TRUE(narrow.values() == wide.values()) << format_name(format);
      const int count = 1 + below(30);
      const auto x = random_x(count, columns, random());
      const auto expected = wide.times(x, 0, count);
      const auto got = narrow.times(x, 0, count);
      ASSERT_TRUE(same_bits(got.data(), expected.data(), got.size()))
          << format_name(format) << ", " << count << " rows times " << rows << " by " << columns;
    }
  }
}

// IQ4_NL's weights as Q8_0.
TEST_P(LinearBodiesTest, NamedCodesGiveTheBitsOfTheirBytes) {
  constexpr int kColumns = 7 * 32;
  const WeightFormat names = weight_format(BlockKind::kIq4Nl);
  const WeightTensors tensors = random_weight(names, 50, kColumns, 21);
  auto bytes = std::make_shared<std::vector<std::byte>>();
  for (std::size_t at = 0; at < tensors.weight.nbytes(); at += 18) {
    const std::byte* block = tensors.weight.data.get() + at;
    bytes->insert(bytes->end(), block, block + 2);
    for (int k = 0; k < 32; ++k) {
      const std::byte name = block[2 + k % 16] >> (k / 16 * 4) & std::byte{15};
      const std::uint8_t code = kTableCodes[std::to_integer<int>(name)];
      bytes->push_back(static_cast<std::byte>(code ^ 0x80U));
    }
  }
  WeightTensors plain;
  plain.weight.dtype = DType::kUInt8;
  plain.weight.shape = {50, kColumns / 32 * 34};
  plain.weight.data = {bytes, bytes->data()};
  const Weight named(names, 50, kColumns, tensors);
  const Weight same(weight_format(BlockKind::kQ80), 50, kColumns, plain);
  ASSERT_EQ(named.values(), same.values());
  for (const int count : {1, 2, 3, 4, 5, 9, 16, 40}) {
    const auto x = random_x(count, kColumns, 22);
    const auto expected = same.times(x, 0, count);
    const auto got = named.times(x, 0, count);
    EXPECT_TRUE(same_bits(got.data(), expected.data(), got.size())) << count << " rows";
  }
}

std::vector<std::string> sets_on_tiles() {
  std::vector<std::string> sets = instruction_sets();
  std::erase_if(sets, [](const std::string& set) { return !set.starts_with("amx"); });
  return sets;
}

using TilesTest = LinearBodiesTest;

INSTANTIATE_TEST_SUITE_P(Sets, TilesTest, testing::ValuesIn(sets_on_tiles()), [](const auto& set) {
  return set.param;
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TilesTest);  // A processor without AVX2.

// On tiles small floats become bf16, which has all of them: such weights give the same bits.
TEST_P(TilesTest, SmallFloatsGiveTheBitsOfTheirValues) {
  for (const WeightFormat& format :
       {WeightFormat{WeightKind::kMxfp4, 4, 32},
        WeightFormat{WeightKind::kNvfp4, 4, 16},
        WeightFormat{WeightKind::kMxfp8, 8, 32}}) {
    for (const int count : {1, 7, 16, 17, 40}) {
      const int columns = 7 * format.group_size + 128 * count;
      const Weight weight(format, 50, columns, 3);
      const std::vector<float> values = weight.values();
      auto bits = std::make_shared<std::vector<std::uint16_t>>();
      for (const float value : values) {
        bits->push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16));
      }
      WeightTensors plain;
      plain.weight.dtype = DType::kBFloat16;
      plain.weight.shape = {50, columns};
      plain.weight.data = {bits, reinterpret_cast<const std::byte*>(bits->data())};
      const Weight same({WeightKind::kBFloat16, 0, 0}, 50, columns, plain);
      ASSERT_EQ(same.values(), values);
      const auto x = random_x(count, columns, 5);
      const auto expected = same.times(x, 0, count);
      const auto got = weight.times(x, 0, count);
      ASSERT_TRUE(same_bits(got.data(), expected.data(), got.size()))
          << format_name(format) << ", " << count << " rows";
    }
  }
}

void expect_bad_rows_alone(const WeightFormat& format, int rows) {
  const int columns = 2 * std::max(column_unit(format), 32);
  const Weight weight(format, 33, columns, 5);
  auto x = random_x(rows, columns, 9);
  const auto expected = weight.times(x, 0, rows);
  const auto width = static_cast<std::size_t>(columns);
  x[2 * width + 1] = std::numeric_limits<float>::quiet_NaN();
  x[5 * width] = std::numeric_limits<float>::infinity();
  const auto y = weight.times(x, 0, rows);
  for (std::size_t at = 0; at < y.size(); ++at) {
    const std::size_t row = at / 33;
    if (row == 2) {
      EXPECT_TRUE(std::isnan(y[at])) << format_name(format) << ", " << rows << " rows";
    } else if (row != 5) {
      EXPECT_EQ(y[at], expected[at]) << format_name(format) << ", " << rows << " rows";
    }
  }
}

// Rows of x with a single one take single weights out: the small ones too, which larger ones hide
// from sums.
void expect_every_weight(const WeightTensors& tensors, int outputs, int columns) {
  const WeightFormat format = {WeightKind::kMxfp8, 8, 32};
  const Weight weight(format, outputs, columns, tensors);
  const auto width = static_cast<std::size_t>(columns);
  const auto height = static_cast<std::size_t>(outputs);
  std::vector<float> x(width * width);
  for (std::size_t k = 0; k < width; ++k) {
    x[k * (width + 1)] = 1;
  }
  const auto y = weight.times(x, 0, columns);
  const auto values = weight.values();
  for (std::size_t i = 0; i < y.size(); ++i) {
    EXPECT_EQ(y[i], values[i % height * width + i / height]) << i;
  }
}

TEST_P(LinearBodiesTest, EveryCodeOfMxfp8IsMultiplied) {
  constexpr int kColumns = 256;
  WeightTensors tensors = random_weight({WeightKind::kMxfp8, 8, 32}, 3, kColumns, 3);
  const auto codes = std::make_shared<std::vector<std::byte>>();
  for (int i = 0; i < 3 * kColumns; ++i) {
    const bool is_nan = i % 128 == 127;
    codes->push_back(static_cast<std::byte>(is_nan ? 0 : i));
  }
  tensors.weight.data = {codes, codes->data()};
  expect_every_weight(tensors, 3, kColumns);
}

// The smallest and the largest scales, each with codes whose products are normal numbers or zeros.
TEST_P(LinearBodiesTest, EveryScaleOfMxfp8IsMultiplied) {
  constexpr int kColumns = 256;
  constexpr unsigned kScales[kColumns / 32] = {0, 1, 127, 247, 245, 246, 250, 254};
  WeightTensors tensors = random_weight({WeightKind::kMxfp8, 8, 32}, 3, kColumns, 3);
  const auto codes = std::make_shared<std::vector<std::byte>>();
  const auto scales = std::make_shared<std::vector<std::byte>>();
  for (int i = 0; i < 3 * kColumns; ++i) {
    const unsigned scale = kScales[i % kColumns / 32];
    const unsigned sign = i % 3 == 0 ? 0x80 : 0;
    // From 2 on for small scales, below 2^-6 for large ones.
    const unsigned magnitude = scale < 128 ? 0x40 + i % 32 : i % 8;
    codes->push_back(static_cast<std::byte>(i % 5 == 0 ? sign : sign | magnitude));
    if (i % 32 == 0) {
      scales->push_back(static_cast<std::byte>(scale));
    }
  }
  tensors.weight.data = {codes, codes->data()};
  tensors.scales->data = {scales, scales->data()};
  expect_every_weight(tensors, 3, kColumns);
}

// A code of mxfp8 that is NaN, as no quantizer writes it.
TEST_P(LinearBodiesTest, CodesThatAreNoNumbersMakeNone) {
  const WeightFormat format = {WeightKind::kMxfp8, 8, 32};
  WeightTensors tensors = random_weight(format, 20, 96, 3);
  auto codes = std::make_shared<std::vector<std::byte>>(
      tensors.weight.data.get(), tensors.weight.data.get() + std::ptrdiff_t{20} * 96
  );
  (*codes)[7 * 96 + 40] = std::byte{0xff};
  tensors.weight.data = {codes, codes->data()};
  const Weight weight(format, 20, 96, tensors);
  for (const int rows : {1, 20}) {
    const auto y = weight.times(random_x(rows, 96, 4), 0, rows);
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(std::isnan(y[i]), i % 20 == 7) << i;
    }
  }
}

TEST_P(LinearBodiesTest, BadRowsStayAlone) {
  for (const WeightFormat& format : all_formats()) {
    for (const int rows : {8, 20, 40}) {  // Few, in passes, many.
      expect_bad_rows_alone(format, rows);
    }
  }
}

}  // namespace
}  // namespace saker::kernels

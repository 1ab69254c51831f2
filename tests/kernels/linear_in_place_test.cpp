// SPDX-License-Identifier: Apache-2.0
// Weights of bf16 that are multiplied where the checkpoint has them.
#include "saker/kernels/cpu/dispatch/dispatch.h"
#include "saker/kernels/cpu/dispatch/linear_bodies.h"
#include "saker/kernels/cpu/dispatch/multiply.h"
#include "saker/kernels/packing/pack.h"

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/random_floats.h"
#include "tests/kernels/random_weights.h"
#include "tests/kernels/same_bits.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace saker::kernels {
namespace {

// A weight of bf16 in parts, each at any address, as a checkpoint has them.
class PartsInPlace {
 public:
  PartsInPlace(const std::vector<int>& rows, int columns, std::uint64_t seed) {
    int all = 0;
    for (const int count : rows) {
      parts_.push_back(random_weight(kFormat, count, columns, seed++));
      Tensor& tensor = parts_.back().weight;
      const std::size_t offset = seed % 3 * 8;
      auto copy = std::make_shared<std::vector<std::byte>>(offset);
      copy->insert(copy->end(), tensor.data.get(), tensor.data.get() + tensor.nbytes());
      tensor.data = std::shared_ptr<const std::byte>(copy, copy->data() + offset);
      all += count;
    }
    const PackedOrders& orders = kernel_table().linear->orders;
    matrix_ = packed_layout(all, columns, kFormat, DType::kBFloat16, orders);
  }

  bool fits() const { return fits_in_place(parts_, matrix_); }

  // Rows of x times the weight, packed or not.
  std::vector<float> times(const std::vector<float>& x, bool in_place) {
    std::vector<std::byte> bytes(
        matrix_.block_bytes() * static_cast<std::size_t>(matrix_.blocks())
    );
    const auto blocks = find_blocks(parts_);
    PackedMatrix matrix = matrix_;
    if (in_place) {
      matrix.block_places = blocks.data();
    } else {
      matrix.data = bytes.data();
      pack_rows(parts_, kFormat, matrix, bytes.data());
    }
    const int count = static_cast<int>(x.size()) / matrix.columns;
    std::vector<float> y(static_cast<std::size_t>(count) * matrix.rows);
    const RowProduct product = {&matrix, {x.data(), matrix.columns, 1, count}, nullptr, y.data()};
    multiply_rows(*kernel_table().linear, {&product, 1});
    return y;
  }

 private:
  static constexpr WeightFormat kFormat = {WeightKind::kBFloat16, 0, 0};

  std::vector<WeightTensors> parts_;
  PackedMatrix matrix_;
};

std::vector<std::string> sets_in_place() {
  std::vector<std::string> sets = instruction_sets();
  std::erase_if(sets, [](const std::string& set) {
    return !set.starts_with("amx") && !set.starts_with("avx512_bf16");
  });
  return sets;
}

class InPlaceTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { select_kernel_table(GetParam()); }
};

INSTANTIATE_TEST_SUITE_P(
    Sets, InPlaceTest, testing::ValuesIn(sets_in_place()), [](const auto& set) { return set.param; }
);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(InPlaceTest);  // A processor without AVX2.

TEST_P(InPlaceTest, GivesTheBitsOfPackedWeights) {
  ASSERT_TRUE(kernel_table().linear->in_place);
  std::mt19937 random(23);  // NOLINT: the same in every run.
  const auto below = [&](unsigned limit) { return static_cast<int>(random() % limit); };
  for (const int count : {1, 2, 5, 9, 12, 13, 16, 17, 40, 70}) {
    std::vector<int> rows(1 + random() % 3);
    std::ranges::generate(rows, [&] { return 16 * (1 + below(11)); });
    const int columns = 32 * (1 + below(50));
    PartsInPlace weight(rows, columns, random());
    ASSERT_TRUE(weight.fits());
    const auto x = normal_floats(static_cast<std::size_t>(count) * columns, random());
    const auto expected = weight.times(x, false);
    const auto got = weight.times(x, true);
    ASSERT_TRUE(same_bits(got.data(), expected.data(), got.size())) << count << " rows";
  }
}

TEST(InPlace, WeightsThatFillNoBlocksAreCopied) {
  EXPECT_TRUE(PartsInPlace({32, 16}, 64, 1).fits());
  EXPECT_FALSE(PartsInPlace({32, 24}, 64, 1).fits());
  EXPECT_FALSE(PartsInPlace({32, 16}, 48, 1).fits());
}

}  // namespace
}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#include "saker/base/tensor.h"

#include "saker/base/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace saker {
namespace {

// The values lie at an odd address, as a file's may.
template <typename Value>
Tensor make_tensor(DType dtype, const std::vector<Value>& values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(Value) + 1);
  std::memcpy(bytes->data() + 1, values.data(), values.size() * sizeof(Value));
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = {static_cast<std::int64_t>(values.size())};
  tensor.data = std::shared_ptr<const std::byte>(bytes, bytes->data() + 1);
  return tensor;
}

TEST(Tensor, NamesAndSizesAsInSafetensors) {
  EXPECT_EQ(dtype_name(DType::kBFloat16), "BF16");
  EXPECT_EQ(dtype_name(DType::kUInt32), "U32");
  EXPECT_EQ(dtype_name(DType::kBool), "BOOL");
  EXPECT_EQ(dtype_size(DType::kBFloat16), 2U);
  EXPECT_EQ(dtype_size(DType::kFloat64), 8U);
  EXPECT_EQ(dtype_size(DType::kUInt8), 1U);
}

TEST(Tensor, CountsElements) {
  Tensor tensor;
  EXPECT_EQ(tensor.element_count(), 1);
  tensor.shape = {3, 5, 7};
  EXPECT_EQ(tensor.element_count(), 105);
  EXPECT_EQ(tensor.nbytes(), 420U);
  tensor.shape = {3, 0, 7};
  EXPECT_EQ(tensor.element_count(), 0);
}

TEST(Tensor, RefusesShapesThatOverflow) {
  Tensor tensor;
  tensor.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_THROW(tensor.element_count(), Error);
  tensor.shape = {-1};
  EXPECT_THROW(tensor.element_count(), Error);
}

TEST(Tensor, ConvertsFloats) {
  EXPECT_EQ(to_floats(make_tensor<float>(DType::kFloat32, {1.5F, -2.0F}))[1], -2.0F);
  EXPECT_EQ(to_floats(make_tensor<double>(DType::kFloat64, {0.25}))[0], 0.25F);
  const auto bf16 = to_floats(make_tensor<std::uint16_t>(DType::kBFloat16, {0x3fc0, 0xc000}));
  EXPECT_EQ(bf16, (std::vector<float>{1.5F, -2.0F}));
}

TEST(Tensor, ConvertsEveryHalf) {
  std::vector<std::uint16_t> halves(0x10000);
  for (std::size_t i = 0; i < halves.size(); ++i) {
    halves[i] = static_cast<std::uint16_t>(i);
  }
  const auto floats = to_floats(make_tensor(DType::kFloat16, halves));
  for (std::size_t i = 0; i < halves.size(); ++i) {
    const int exponent = static_cast<int>(i >> 10 & 0x1f);
    const int mantissa = static_cast<int>(i & 0x3ff);
    const float sign = (i & 0x8000) != 0 ? -1.0F : 1.0F;
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(floats[i]), mantissa != 0);
      EXPECT_EQ(std::isinf(floats[i]), mantissa == 0);
    } else {
      const int whole = exponent == 0 ? mantissa : mantissa + 1024;
      EXPECT_EQ(
          floats[i], sign * std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - 25)
      );
      EXPECT_EQ(std::signbit(floats[i]), sign < 0);
    }
  }
}

TEST(Tensor, RefusesIntegersAsFloats) {
  EXPECT_THROW(to_floats(make_tensor<std::uint32_t>(DType::kUInt32, {1})), Error);
}

}  // namespace
}  // namespace saker

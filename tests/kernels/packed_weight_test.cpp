// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/storage/packed_weight.h"

#include "saker/base/error.h"

#include "tests/kernels/random_weights.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace saker::kernels {
namespace {

std::vector<float> to_vector(mx::array array) {
  array = mx::contiguous(mx::astype(array, mx::float32));
  mx::eval(array);
  return {array.data<float>(), array.data<float>() + array.size()};
}

mx::array as_array(const Tensor& tensor) {
  auto memory = mx::allocator::malloc(tensor.nbytes());
  mx::allocator::Buffer buffer = memory.buffer();
  std::memcpy(buffer.raw_ptr(), tensor.data.get(), tensor.nbytes());
  const mx::Dtype dtype = tensor.dtype == DType::kFloat32    ? mx::float32
                          : tensor.dtype == DType::kFloat16  ? mx::float16
                          : tensor.dtype == DType::kBFloat16 ? mx::bfloat16
                          : tensor.dtype == DType::kUInt8    ? mx::uint8
                                                             : mx::uint32;
  const mx::Shape shape = {static_cast<int>(tensor.shape[0]), static_cast<int>(tensor.shape[1])};
  return mx::array(std::move(memory), shape, dtype);
}

// MLX's own reading of the same tensors.
std::vector<float> mlx_values(const WeightTensors& tensors, const WeightFormat& format) {
  if (!tensors.scales) {
    return to_vector(as_array(tensors.weight));
  }
  auto scales = as_array(*tensors.scales);
  std::optional<mx::array> biases;
  if (tensors.biases) {
    scales = mx::astype(scales, mx::float32);
    biases = mx::astype(as_array(*tensors.biases), mx::float32);
  }
  const char* modes[] = {"affine", "mxfp4", "nvfp4", "mxfp8"};
  const auto mode = static_cast<int>(format.kind) - static_cast<int>(WeightKind::kAffine);
  return to_vector(mx::dequantize(
      as_array(tensors.weight),
      scales,
      biases,
      format.group_size,
      format.bits,
      modes[mode],
      std::nullopt,
      mx::float32
  ));
}

std::string pack_error(const std::vector<WeightTensors>& parts, const WeightFormat& format) {
  try {
    PackedWeight::pack(parts, format);
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::kCorruptData || error.code() == ErrorCode::kUnsupported);
    return error.what();
  }
  return "";
}

TEST(PackedWeight, KeepsTheValuesThatMlxReads) {
  for (const WeightFormat& format : mlx_formats()) {
    const int columns = format.group_size == 0 ? 77 : 2 * format.group_size;
    for (const std::uint64_t seed : {0, 1, 2}) {
      const auto tensors = random_weight(format, 37, columns, seed);
      const auto packed = PackedWeight::pack({tensors}, format);
      EXPECT_EQ(packed.rows(), 37);
      EXPECT_EQ(packed.columns(), columns);
      EXPECT_EQ(packed.format(), format);
      EXPECT_EQ(to_vector(packed.dequantized()), mlx_values(tensors, format))
          << format_name(format);
    }
  }
}

TEST(PackedWeight, ReadsEveryCodeAndScaleOfSmallFloats) {
  for (const WeightFormat& format :
       {WeightFormat{WeightKind::kMxfp4, 4, 32},
        WeightFormat{WeightKind::kNvfp4, 4, 16},
        WeightFormat{WeightKind::kMxfp8, 8, 32}}) {
    // A row per scale, every code in a row; scales whose products bf16 holds without rounding.
    auto tensors = random_weight(format, 255, 256, 1);
    auto* codes = const_cast<std::byte*>(tensors.weight.data.get());
    auto* scales = const_cast<std::byte*>(tensors.scales->data.get());
    const std::size_t row_bytes = 256 * static_cast<std::size_t>(format.bits) / 8;
    const std::size_t groups = 256 / static_cast<std::size_t>(format.group_size);
    for (std::size_t row = 0; row < 255; ++row) {
      for (std::size_t i = 0; i < row_bytes; ++i) {
        const bool is_nan = format.bits == 8 && i % 128 == 127;
        codes[row * row_bytes + i] = static_cast<std::byte>(is_nan ? i - 1 : i);
      }
      const bool nvfp4 = format.kind == WeightKind::kNvfp4;
      const auto scale = nvfp4 ? row % 127 : 10 + row % 230;
      std::memset(scales + row * groups, static_cast<int>(scale), groups);
    }
    const auto got = to_vector(PackedWeight::pack({tensors}, format).dequantized());
    const auto expected = mlx_values(tensors, format);
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])))
          << format_name(format) << " row " << i / 256 << " code " << i % 256 << ": " << got[i]
          << ", expected " << expected[i];
    }
  }
}

// Products multiply a group's codes as numbers, so its scale says that one is none.
TEST(PackedWeight, ACodeThatIsNoNumberMakesItsGroupNone) {
  const WeightFormat format = {WeightKind::kMxfp8, 8, 32};
  const auto tensors = random_weight(format, 40, 160, 1);
  auto* codes = const_cast<std::byte*>(tensors.weight.data.get());
  for (const int at : {3 * 160 + 32, 3 * 160 + 63, 39 * 160 + 159}) {
    codes[at] = std::byte{0x7f};
  }
  const auto got = to_vector(PackedWeight::pack({tensors}, format).dequantized());
  const auto expected = mlx_values(tensors, format);
  for (int i = 0; i < 40 * 160; ++i) {
    const int group = i / 32;
    if (group == 3 * 5 + 1 || group == 39 * 5 + 4) {
      EXPECT_TRUE(std::isnan(got[i])) << i;
    } else {
      EXPECT_EQ(got[i], expected[i]) << i;
    }
  }
}

TEST(PackedWeight, JoinsPartsRowAfterRow) {
  for (const WeightFormat& format : mlx_formats()) {
    const int columns = format.group_size == 0 ? 40 : 2 * format.group_size;
    const auto first = random_weight(format, 21, columns, 3);
    const auto second = random_weight(format, 5, columns, 6);
    auto expected = mlx_values(first, format);
    const auto tail = mlx_values(second, format);
    expected.insert(expected.end(), tail.begin(), tail.end());
    const auto packed = PackedWeight::pack({first, second}, format);
    EXPECT_EQ(packed.rows(), 26);
    EXPECT_EQ(to_vector(packed.dequantized()), expected) << format_name(format);
  }
}

TEST(PackedWeight, GivesPagesBackOnce) {
  const WeightFormat format = {WeightKind::kAffine, 4, 64};
  auto tensors = random_weight(format, 16, 64, 3);
  int released = 0;
  for (Tensor* tensor : {&tensors.weight, &*tensors.scales, &*tensors.biases}) {
    tensor->release = [&released] { ++released; };
  }
  const auto packed = PackedWeight::pack({tensors}, format);
  EXPECT_EQ(released, 3);
}

TEST(PackedWeight, CountsTheBytesOfOneProduct) {
  const WeightFormat format = {WeightKind::kAffine, 4, 64};
  const auto bf16_scales = random_weight(format, 32, 128, 0);
  EXPECT_EQ(PackedWeight::pack({bf16_scales}, format).nbytes(), 32U * (64 + 2 * 4));
}

TEST(PackedWeight, RefusesShapesThatDisagree) {
  const WeightFormat affine = {WeightKind::kAffine, 4, 64};
  const auto good = random_weight(affine, 8, 128, 3);
  EXPECT_EQ(pack_error({good}, affine), "");
  using Change = std::function<void(WeightTensors&)>;
  const std::vector<std::pair<Change, std::string>> cases = {
      {[](auto& t) { t.weight.shape = {8, 15}; }, "15 words"},
      {[](auto& t) { t.weight.shape = {8, 8}; }, "scales"},
      {[](auto& t) { t.weight.shape = {128}; }, "[weight] got U32 [128]"},
      {[](auto& t) { t.weight.shape = {0, 16}; }, "U32 [0, 16]"},
      {[](auto& t) { t.weight.shape = {std::int64_t{1} << 40, 16}; }, "1099511627776"},
      {[](auto& t) { t.weight.dtype = DType::kFloat32; }, "F32"},
      {[](auto& t) { t.scales.reset(); }, "no scales"},
      {[](auto& t) { t.biases.reset(); }, "no biases"},
      {[](auto& t) { t.scales->shape = {8, 3}; }, "[8, 3]"},
      {[](auto& t) { t.scales->dtype = DType::kUInt8; }, "U8"},
      {[](auto& t) { t.biases->shape = {2, 8}; }, "[2, 8]"},
  };
  for (const auto& [change, words] : cases) {
    auto bad = good;
    change(bad);
    EXPECT_NE(pack_error({bad}, affine).find(words), std::string::npos)
        << words << ", got: " << pack_error({bad}, affine);
  }
}

TEST(PackedWeight, RefusesUnknownFormatsAndUnlikeParts) {
  const WeightFormat affine = {WeightKind::kAffine, 4, 64};
  const auto good = random_weight(affine, 8, 128, 3);
  EXPECT_NE(pack_error({good}, {WeightKind::kAffine, 7, 64}), "");
  EXPECT_NE(pack_error({good}, {WeightKind::kAffine, 4, 48}), "");
  EXPECT_NE(pack_error({good}, {WeightKind::kMxfp4, 4, 64}), "");
  EXPECT_NE(pack_error({good, random_weight(affine, 8, 64, 3)}, affine), "");
  EXPECT_NE(pack_error({good, random_weight(affine, 8, 128, 4)}, affine), "");
  const WeightFormat f32 = {WeightKind::kFloat32, 0, 0};
  auto dense = random_weight(f32, 8, 128, 3);
  dense.scales = good.scales;
  EXPECT_NE(pack_error({dense}, f32), "");
}

}  // namespace
}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/quantize/quantize_loops.h"

#include "saker/kernels/mx.h"

#include "tests/kernels/random_weights.h"
#include "tests/support/each_instruction_set.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace saker::kernels {

namespace portable {
extern const QuantizeLoops quantize_loops_bodies;
}

namespace {

constexpr std::size_t kColumns = 256;

std::vector<const QuantizeLoops*> all_loops() {
  std::vector<const QuantizeLoops*> loops;
  testing::for_each_instruction_set([&](InstructionSet /*set*/) {
    if (loops.empty() || loops.back() != &quantize_loops()) {
      loops.push_back(&quantize_loops());
    }
  });
  return loops;
}

std::string mode_name(WeightKind kind) {
  return kind == WeightKind::kMxfp4   ? "mxfp4"
         : kind == WeightKind::kNvfp4 ? "nvfp4"
         : kind == WeightKind::kMxfp8 ? "mxfp8"
                                      : "affine";
}

mx::Dtype mx_dtype(DType dtype) {
  return dtype == DType::kFloat32   ? mx::float32
         : dtype == DType::kFloat16 ? mx::float16
                                    : mx::bfloat16;
}

std::vector<WeightFormat> quantized_formats() {
  auto formats = mlx_formats();
  std::erase_if(formats, [](const WeightFormat& format) { return format.bits == 0; });
  return formats;
}

std::vector<std::byte> bytes_of(mx::array array) {
  array = mx::contiguous(array);
  array.eval();
  const auto* data = array.data<std::byte>();
  return {data, data + array.nbytes()};
}

mx::array array_of(const std::vector<float>& values, DType dtype) {
  const int rows = static_cast<int>(values.size() / kColumns);
  return mx::astype(
      mx::array(values.begin(), {rows, static_cast<int>(kColumns)}, mx::float32), mx_dtype(dtype)
  );
}

// Groups of every size of number, with zeros, ties, equal values and values of one sign.
std::vector<float> difficult_values(DType dtype) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const int below = dtype == DType::kFloat16 ? 10 : 60;
  const int above = dtype == DType::kFloat16 ? 10 : 25;  // See quantize_loops.h.
  std::vector<float> values;
  for (int row = 0; row < 64; ++row) {
    for (std::size_t group = 0; group < kColumns / 16; ++group) {
      const float size = std::ldexp(1.0F, static_cast<int>(random() % (below + above)) - below);
      const float shift = random() % 4 == 0 ? 3.0F : 0.0F;
      const auto kind = random() % 8;
      for (int i = 0; i < 16; ++i) {
        const float x = kind == 0   ? 0.0F
                        : kind == 1 ? 1.0F
                        : kind == 2 ? static_cast<float>(static_cast<int>(random() % 49) - 24) / 4
                                    : normal(random) + shift;
        values.push_back(x * size);
      }
    }
  }
  return values;
}

// Every number of up to 16 bits, at most `limit`, beside one of size `limit` in each group.
std::vector<float> all_short_floats(DType dtype, float limit) {
  std::vector<std::uint16_t> bits(1 << 16);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bits[i] = static_cast<std::uint16_t>(i);
  }
  std::vector<float> all(bits.size());
  portable::quantize_loops_bodies.widen(
      reinterpret_cast<const std::byte*>(bits.data()), dtype, bits.size(), all.data()
  );
  std::vector<float> values;
  for (const float x : all) {
    if (std::fabs(x) <= limit && (x == 0.0F || std::fabs(x) >= 1e-30F)) {
      values.push_back(values.size() % 16 == 0 ? limit : x);
    }
  }
  values.resize(values.size() / kColumns * kColumns);
  return values;
}

void expect_same_as_mlx(
    const std::vector<float>& unrounded, const WeightFormat& format, DType dtype
) {
  SCOPED_TRACE(format_name(format) + " " + std::string(dtype_name(dtype)));
  const auto w = array_of(unrounded, dtype);
  const auto expected = mx::quantize(w, format.group_size, format.bits, mode_name(format.kind));
  const auto rounded = bytes_of(mx::astype(w, mx::float32));
  std::vector<float> values(unrounded.size());
  std::memcpy(values.data(), rounded.data(), rounded.size());
  const auto restored = mx::astype(
      mx::dequantize(
          expected[0],
          expected[1],
          expected.size() > 2 ? std::optional(expected[2]) : std::nullopt,
          format.group_size,
          format.bits,
          mode_name(format.kind),
          std::nullopt,
          mx_dtype(dtype)
      ),
      mx::float32
  );
  for (const QuantizeLoops* loops : all_loops()) {
    std::vector<std::byte> codes(expected[0].nbytes());
    std::vector<std::byte> scales(expected[1].nbytes());
    std::vector<std::byte> biases(expected.size() > 2 ? expected[2].nbytes() : 0);
    loops->encode(
        format,
        dtype,
        values.data(),
        values.size(),
        {.codes = codes.data(), .scales = scales.data(), .biases = biases.data()}
    );
    EXPECT_EQ(scales, bytes_of(expected[1]));
    EXPECT_EQ(codes, bytes_of(expected[0]));
    if (expected.size() > 2) {
      EXPECT_EQ(biases, bytes_of(expected[2]));
    }
    std::vector<float> back(values.size());
    loops->decode(
        format,
        dtype,
        {.codes = codes.data(), .scales = scales.data(), .biases = biases.data(), .dtype = dtype},
        back.size(),
        back.data()
    );
    const auto wanted = bytes_of(restored);
    EXPECT_EQ(std::memcmp(back.data(), wanted.data(), wanted.size()), 0);
  }
}

constexpr DType kDTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

TEST(QuantizeLoopsTest, GiveTheBitsOfMlx) {
  for (const DType dtype : kDTypes) {
    const auto values = difficult_values(dtype);
    for (const WeightFormat& format : quantized_formats()) {
      expect_same_as_mlx(values, format, dtype);
    }
  }
}

TEST(QuantizeLoopsTest, GiveTheBitsOfMlxForEveryShortFloat) {
  auto formats = quantized_formats();
  std::erase_if(formats, [](const WeightFormat& format) {
    return format.kind == WeightKind::kAffine && format.bits != 3;
  });
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    for (const float limit : {6.0F, 448.0F, 7.25F, 0.01F}) {
      const auto values = all_short_floats(dtype, limit);
      for (const WeightFormat& format : formats) {
        expect_same_as_mlx(values, format, dtype);
      }
    }
  }
}

// Other dtypes of scales and biases are rounded first.
TEST(QuantizeLoopsTest, DecodeIntoAnotherDType) {
  const auto values = difficult_values(DType::kFloat16);
  const auto parts = mx::quantize(array_of(values, DType::kFloat32), 64, 5);
  const auto expected = bytes_of(mx::astype(
      mx::dequantize(
          parts[0], mx::astype(parts[1], mx::bfloat16), mx::astype(parts[2], mx::bfloat16), 64, 5
      ),
      mx::float32
  ));
  const auto codes = bytes_of(parts[0]);
  const auto scales = bytes_of(parts[1]);
  const auto biases = bytes_of(parts[2]);
  for (const QuantizeLoops* loops : all_loops()) {
    std::vector<float> back(values.size());
    loops->decode(
        {.kind = WeightKind::kAffine, .bits = 5, .group_size = 64},
        DType::kBFloat16,
        {.codes = codes.data(),
         .scales = scales.data(),
         .biases = biases.data(),
         .dtype = DType::kFloat32},
        back.size(),
        back.data()
    );
    EXPECT_EQ(std::memcmp(back.data(), expected.data(), expected.size()), 0);
  }
}

TEST(QuantizeLoopsTest, RoundAsMlx) {
  std::vector<float> values;
  for (std::uint64_t bits = 0; bits < std::uint64_t{1} << 32; bits += 40'009) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (!std::isnan(x)) {
      values.push_back(x);
    }
  }
  for (const float x :
       {65504.0F,
        65519.99F,
        65520.0F,
        0x1p-24F,
        0x1p-25F,
        0x1.8p-25F,
        0x1p-14F,
        0x1.ffep-15F,
        0x1.fffp-15F,
        -0.0F}) {
    values.push_back(x);
  }
  values.resize(values.size() / kColumns * kColumns + kColumns);
  values.resize(values.size() - kColumns + 5);
  for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
    const auto rounded = mx::astype(
        mx::array(values.begin(), {static_cast<int>(values.size())}, mx::float32), mx_dtype(dtype)
    );
    const auto expected = bytes_of(rounded);
    const auto widened = bytes_of(mx::astype(rounded, mx::float32));
    for (const QuantizeLoops* loops : all_loops()) {
      std::vector<std::byte> narrow(expected.size());
      loops->narrow(values.data(), dtype, values.size(), narrow.data());
      EXPECT_EQ(narrow, expected) << dtype_name(dtype);
      std::vector<float> wide(values.size());
      loops->widen(narrow.data(), dtype, wide.size(), wide.data());
      EXPECT_EQ(std::memcmp(wide.data(), widened.data(), widened.size()), 0) << dtype_name(dtype);
    }
  }
}

}  // namespace
}  // namespace saker::kernels

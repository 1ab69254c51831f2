// SPDX-License-Identifier: Apache-2.0
// Every operation of vec.h, lane by lane against plain C++, in every instruction set.
#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/vec_operations.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <string_view>

namespace saker::kernels {
namespace {

constexpr std::uint32_t kNan = 0x7fc00000U;  // Stands for any NaN.
constexpr int kTrials = 4096;                // Times 16 lanes: all values of 16 bits.

std::uint32_t bits(float value) {
  return std::isnan(value) ? kNan : std::bit_cast<std::uint32_t>(value);
}

float from_bf16(std::uint32_t half) {
  return std::bit_cast<float>(half << 16U);
}

float from_f16(std::uint32_t half) {
  const int exponent = static_cast<int>(half >> 10U & 31U);
  const auto fraction = static_cast<float>(half & 1023U);
  float size = std::ldexp(fraction + (exponent == 0 ? 0.0F : 1024.0F), std::max(exponent, 1) - 25);
  if (exponent == 31) {
    size = fraction == 0.0F ? HUGE_VALF : NAN;
  }
  return std::copysign(size, (half & 0x8000U) != 0 ? -1.0F : 1.0F);
}

// Of the two neighbours the nearer one, then the even one; NaN stays, as a quiet one.
std::uint32_t to_bf16(float value) {
  const std::uint32_t down = std::bit_cast<std::uint32_t>(value) >> 16U;
  if (!std::isfinite(value) || from_bf16(down) == value) {
    return std::isnan(value) ? down | 0x40U : down;
  }
  const double low = std::abs(static_cast<double>(value) - from_bf16(down));
  // The step above the largest number is infinity, which counts as 2^128.
  const double up = std::isinf(from_bf16(down + 1)) ? std::copysign(0x1p128, value)
                                                    : static_cast<double>(from_bf16(down + 1));
  const double high = std::abs(up - value);
  return low < high || (low == high && down % 2 == 0) ? down : down + 1;
}

// The same for what is multiplied: there, subnormal numbers are zeros, but on ARM.
std::uint32_t to_operand(float value, bool arm) {
  return arm || std::fpclassify(value) != FP_SUBNORMAL ? to_bf16(value)
                                                       : to_bf16(std::copysign(0.0F, value));
}

template <typename Join>
float tree(const float* lanes, Join join) {
  float at[16];
  std::copy_n(lanes, 16, at);
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      at[i] = join(at[i], at[i + half]);
    }
  }
  return at[0];
}

float flushed(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value;
}

// The sum rounded to odd: toward zero, the last bit set unless the sum is exact. Numbers below
// 2^-126 are zero.
float add_to_odd(float x, float y) {
  const double a = flushed(x);
  const double b = flushed(y);
  const double sum = a + b;
  if (!std::isfinite(sum)) {
    return static_cast<float>(sum);
  }
  const double part = sum - a;
  const double rest = (a - (sum - part)) + (b - part);  // What the float64 sum lacks.
  auto near = static_cast<float>(sum);
  if (near == sum && rest == 0) {
    return flushed(near);
  }
  const double excess = near - sum - rest;
  if (near > 0 ? excess > 0 : excess < 0) {
    near = std::nextafter(near, 0.0F);
  }
  return flushed(std::bit_cast<float>(std::bit_cast<std::uint32_t>(near) | 1U));
}

// In the low half.
std::uint32_t bf16_of_byte(std::uint32_t a) {
  return bits(static_cast<float>(a & 0xffU)) >> 16U;
}

// As AVX-512 does it: one product after the other, each fused.
std::uint32_t fused_dot(float acc, std::uint32_t a, std::uint32_t b) {
  const float odd = std::fma(from_bf16(a >> 16U), from_bf16(b >> 16U), acc);
  return bits(std::fma(from_bf16(a), from_bf16(b), odd));
}

// As ARM does it; a product of bf16 numbers is exact.
std::uint32_t dot_to_odd(float acc, std::uint32_t a, std::uint32_t b) {
  const float even = from_bf16(a) * from_bf16(b);
  const float odd = from_bf16(a >> 16U) * from_bf16(b >> 16U);
  return bits(add_to_odd(acc, add_to_odd(even, odd)));
}

// The nearest whole number, to even.
std::uint32_t to_int(float value) {
  const bool fits = value >= -0x1p31F && value < 0x1p31F;
  return fits ? static_cast<std::uint32_t>(std::lrint(value)) : 0x80000000U;
}

std::uint32_t dot_int16(std::uint32_t acc, std::uint32_t a, std::uint32_t b) {
  const auto product = [](std::uint32_t x, std::uint32_t y) {
    return static_cast<std::uint32_t>(static_cast<std::int16_t>(x) * static_cast<std::int16_t>(y));
  };
  return acc + product(a, b) + product(a >> 16U, b >> 16U);
}

// Of the halves, which wrap around.
std::uint32_t add_halves(std::uint32_t a, std::uint32_t b) {
  return ((a + b) & 0xffffU) | ((a & 0xffff0000U) + (b & 0xffff0000U));
}

using Expected = std::function<std::uint32_t(const VecInput& in, int i)>;

template <typename Function>
Expected of_xyz(Function function) {
  return
      [function](const VecInput& in, int i) { return bits(function(in.x[i], in.y[i], in.z[i])); };
}

template <typename Function>
Expected of_ab(Function function) {
  return [function](const VecInput& in, int i) { return function(in.a[i], in.b[i]); };
}

// Of both halves of a.
Expected of_nibble(int n) {
  return [n](const VecInput& in, int i) {
    const auto integer = [&](std::uint32_t half) {
      return static_cast<std::uint16_t>(kByteTable[half >> (4 * n) & 15U]);
    };
    return integer(in.a[i] & 0xffffU) | std::uint32_t{integer(in.a[i] >> 16U)} << 16U;
  };
}

float lesser(float x, float y) {
  return x < y ? x : y;
}

float greater(float x, float y) {
  return x > y ? x : y;
}

std::uint32_t codes_of_bytes(std::uint32_t names, std::uint32_t) {
  std::uint32_t codes = 0;
  for (int at = 0; at < 32; at += 8) {
    codes |= std::uint32_t{kCodeTable[names >> at & 15U]} << at;
  }
  return codes;
}

std::uint32_t folded_word(const VecInput& in, int i) {
  return i < 8 ? in.a[i] : in.a[i - 8] >> 8U;
}

std::map<std::string, Expected> expectations(bool fused, bool arm) {
  const auto as_bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  return {
      {"store", [=](const VecInput& in, int i) { return as_bits(in.x[i]); }},
      {"load_part", [=](const VecInput& in, int i) { return i < in.n ? as_bits(in.x[i]) : 0U; }},
      {"store_part",
       [=](const VecInput& in, int i) { return as_bits(i < in.n ? in.x[i] : in.y[i]); }},
      {"load_bf16", [](const VecInput& in, int i) { return bits(from_bf16(in.halves[i])); }},
      {"load_f16", [](const VecInput& in, int i) { return bits(from_f16(in.halves[i])); }},
      {"store_bf16", [](const VecInput& in, int i) { return to_bf16(in.x[i]); }},
      {"constants", [](const VecInput& in, int) { return in.a[0]; }},
      {"look_up", [=](const VecInput& in, int i) { return as_bits(in.x[in.a[i] & 15U]); }},
      {"add", of_xyz([](float x, float y, float) { return x + y; })},
      {"sub", of_xyz([](float x, float y, float) { return x - y; })},
      {"mul", of_xyz([](float x, float y, float) { return x * y; })},
      {"div", of_xyz([](float x, float y, float) { return x / y; })},
      {"fma", of_xyz([fused](float x, float y, float z) {
         return fused ? std::fma(x, y, z) : x * y + z;
       })},
      {"min", of_xyz([](float x, float y, float) { return lesser(x, y); })},
      {"max", of_xyz([](float x, float y, float) { return greater(x, y); })},
      {"square_root", of_xyz([](float x, float, float) { return std::sqrt(x); })},
      {"add_u32", of_ab([](std::uint32_t a, std::uint32_t b) { return a + b; })},
      {"sub_u32", of_ab([](std::uint32_t a, std::uint32_t b) { return a - b; })},
      {"bit_and", of_ab([](std::uint32_t a, std::uint32_t b) { return a & b; })},
      {"bit_or", of_ab([](std::uint32_t a, std::uint32_t b) { return a | b; })},
      {"shift_left", of_ab([](std::uint32_t a, std::uint32_t) { return a << 5U; })},
      {"shift_right", of_ab([](std::uint32_t a, std::uint32_t) { return a >> 5U; })},
      {"shift_right_signed", of_ab([](std::uint32_t a, std::uint32_t) {
         return static_cast<std::uint32_t>(static_cast<std::int32_t>(a) >> 5);
       })},
      {"to_float",
       of_ab([](std::uint32_t a, std::uint32_t) { return bits(static_cast<float>(a >> 8U)); })},
      {"even_bf16", of_ab([](std::uint32_t a, std::uint32_t) { return a << 16U; })},
      {"odd_bf16", of_ab([](std::uint32_t a, std::uint32_t) { return a & 0xffff0000U; })},
      {"bf16_of_bytes<0>", of_ab([](std::uint32_t a, std::uint32_t) {
         return bf16_of_byte(a) | bf16_of_byte(a >> 16U) << 16U;
       })},
      {"bf16_of_bytes<1>", of_ab([](std::uint32_t a, std::uint32_t) {
         return bf16_of_byte(a >> 8U) | bf16_of_byte(a >> 24U) << 16U;
       })},
      {"reduce_add", [](const VecInput& in, int) { return bits(tree(in.x, std::plus<float>())); }},
      {"reduce_max", [](const VecInput& in, int) { return bits(tree(in.x, greater)); }},
      {"where_nan", of_xyz([](float x, float y, float z) { return std::isnan(x) ? y : z; })},
      {"to_int", [](const VecInput& in, int i) { return to_int(in.x[i]); }},
      {"int16_pairs",
       [](const VecInput& in, int i) {
         const std::uint32_t* pair = (i < 8 ? in.a : in.b) + i % 8 * 2;
         return pair[0] >> 16U | (pair[1] & 0xffff0000U);
       }},
      {"dot_int16_pairs",
       [=](const VecInput& in, int i) { return dot_int16(as_bits(in.z[i]), in.a[i], in.b[i]); }},
      {"dot_int16_sums",
       [=](const VecInput& in, int i) {
         return dot_int16(
             as_bits(in.z[i]),
             add_halves(in.a[i], in.b[i]),
             add_halves(as_bits(in.x[i]), as_bits(in.y[i]))
         );
       }},
      {"load_folded", folded_word},
      {"look_up_bytes", of_ab(codes_of_bytes)},
      {"look_up_integers<0>", of_nibble(0)},
      {"look_up_integers<1>", of_nibble(1)},
      {"look_up_integers<2>", of_nibble(2)},
      {"look_up_integers<3>", of_nibble(3)},
      {"look_up_pairs",
       [](const VecInput& in, int i) {
         return in.halves[in.a[i] & 15U] | in.halves[in.a[i] >> 16U & 15U] << 16U;
       }},
      {"dot_bf16_pairs",
       [=](const VecInput& in, int i) {
         return (arm ? dot_to_odd : fused_dot)(in.z[i], in.a[i], in.b[i]);
       }},
      {"bf16_pairs",
       [=](const VecInput& in, int i) {
         const float* pair = (i < 8 ? in.x : in.y) + i % 8 * 2;
         return to_operand(pair[0], arm) | to_operand(pair[1], arm) << 16U;
       }},
      {"round_to_bf16", [=](const VecInput& in, int i) { return to_operand(in.x[i], arm) << 16U; }},
  };
}

class Inputs {
 public:
  VecInput next() {
    VecInput in{};
    for (int i = 0; i < 16; ++i) {
      in.x[i] = number();
      in.y[i] = number();
      in.z[i] = number();
      in.a[i] = bf16_pair();
      in.b[i] = bf16_pair();
      in.halves[i] = static_cast<std::uint16_t>(16 * trial_ + i);
    }
    in.n = trial_ % 17;
    ++trial_;
    return in;
  }

 private:
  // Any number, often one of those that are easily got wrong.
  float number() {
    using Limits = std::numeric_limits<float>;
    constexpr float kSpecial[] = {
        0.0F,
        -0.0F,
        1.0F,
        -1.0F,
        0x1.01p0F,
        0x1.03p0F,
        Limits::infinity(),
        -Limits::infinity(),
        Limits::quiet_NaN(),
        Limits::denorm_min(),
        Limits::min(),
        Limits::max(),
        Limits::lowest()
    };
    switch (random_() % 4) {
      case 0:
        return kSpecial[random_() % std::size(kSpecial)];
      case 1:
        return std::bit_cast<float>(static_cast<std::uint32_t>(random_()));
      default:
        return moderate();
    }
  }

  float moderate() { return std::uniform_real_distribution<float>(-8.0F, 8.0F)(random_); }

  std::uint32_t bf16_pair() { return to_bf16(moderate()) | to_bf16(moderate()) << 16U; }

  std::mt19937 random_{7};  // NOLINT: the same in every run.
  int trial_ = 0;
};

bool agree(std::uint32_t got, std::uint32_t want) {
  return want == kNan ? std::isnan(std::bit_cast<float>(got)) : got == want;
}

// Stops at the first lane that differs.
void check_operation(const VecSet& set, const VecOperation& operation, const Expected& want) {
  Inputs inputs;
  for (int trial = 0; trial < kTrials; ++trial) {
    const VecInput in = inputs.next();
    VecOutput out{};
    operation.run(in, out);
    for (int i = 0; i < 16; ++i) {
      ASSERT_PRED2(agree, out.lanes[i], want(in, i))
          << set.name << " " << operation.name << " lane " << i << " of " << in.x[i] << " "
          << in.y[i] << " " << in.z[i] << " " << in.halves[i];
    }
  }
}

TEST(Vec, EveryOperationInEveryInstructionSet) {
  auto runnable = instruction_sets();
  // That of Zen 4 has the vectors of another.
  std::erase_if(runnable, [](const auto& name) { return name.find("zen4") != name.npos; });
  int tested = 0;
  for (const VecSet& set : vec_sets()) {
    if (std::find(runnable.begin(), runnable.end(), set.name) == runnable.end()) {
      continue;
    }
    ++tested;
    EXPECT_EQ(set.operations.fused_multiply_add, set.name != std::string("portable"));
    const bool arm = std::string_view(set.name).starts_with("neon");
    const auto expected = expectations(set.operations.fused_multiply_add, arm);
    for (int k = 0; k < set.operations.count; ++k) {
      const VecOperation& operation = set.operations.list[k];
      if (operation.run != nullptr) {
        check_operation(set, operation, expected.at(operation.name));
      }
    }
  }
  EXPECT_EQ(tested, static_cast<int>(runnable.size()));
}

}  // namespace
}  // namespace saker::kernels

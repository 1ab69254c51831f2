// SPDX-License-Identifier: Apache-2.0
// The loops of quantize_loops.h for one instruction set.
#include "saker/kernels/quantize/code_stream.h"
#include "saker/kernels/quantize/float_lanes.h"
#include "saker/kernels/quantize/quantize_loops.h"

#include <cmath>

namespace saker::kernels::SAKER_ISA {
namespace {

constexpr std::size_t kMaxGroup = 128;
constexpr float kInfinity = __builtin_inff();

float largest(Floats x) {
  float best = x[0];
  for (std::size_t lane = 1; lane < kLanes; ++lane) {
    best = x[lane] > best ? x[lane] : best;
  }
  return best;
}

// Calls function<dtype>() with the dtype of the weights.
template <typename Function>
auto with_dtype(DType dtype, const Function& function) {
  switch (dtype) {
    case DType::kFloat32:
      return function.template operator()<DType::kFloat32>();
    case DType::kFloat16:
      return function.template operator()<DType::kFloat16>();
    default:
      return function.template operator()<DType::kBFloat16>();
  }
}

// Writes kBits of each code; `count` is a multiple of 16. Touches no byte beyond the stream.
template <int kBits>
void write_codes(const std::uint8_t* codes, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; i += 8, to += kBits) {
    const std::uint64_t stream = join_codes<kBits>(load<std::uint64_t>(codes + i));
    __builtin_memcpy(to, &stream, kBits);
  }
}

template <int kBits>
void read_codes(const std::byte* from, std::size_t count, std::uint8_t* codes) {
  for (std::size_t i = 0; i < count; i += 8, from += kBits) {
    std::uint64_t stream = 0;
    __builtin_memcpy(&stream, from, kBits);
    store(codes + i, part_codes<kBits>(stream));
  }
}

// A line through zero where possible; it meets the end farther from zero exactly.
AffineLine fit_line(float low, float high, float steps) {
  const bool from_low = std::fabs(low) > std::fabs(high);
  const float width = (high - low) / steps;
  float scale = width < 1e-7F ? 1e-7F : width;
  scale = from_low ? scale : -scale;
  const float edge = from_low ? low : high;
  const float code = std::rint(edge / scale);
  return code != 0.0F ? AffineLine{edge / code, edge} : AffineLine{scale, 0.0F};
}

AffineLine group_line(const float* values, std::size_t group, float steps) {
  Floats low = all(kInfinity);
  Floats high = all(-kInfinity);
  for (std::size_t i = 0; i < group; i += kLanes) {
    const Floats x = load<Floats>(values + i);
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
  return fit_line(-largest(-low), largest(high), steps);
}

// Encodes numbers that are rounded already.
AffineLine encode_line(float steps, const float* values, std::size_t group, std::uint8_t* codes) {
  const AffineLine line = group_line(values, group, steps);
  for (std::size_t i = 0; i < group; i += kLanes) {
    Floats code = (load<Floats>(values + i) - line.bias) / line.scale;
    code = code > 0.0F ? code : Floats{};
    code = code < steps ? code : all(steps);
    // Adding 2^23 rounds to whole numbers: larger floats have no fraction.
    store(codes + i, __builtin_convertvector(bits_of(code + 0x1p23F), Bytes));
  }
  return line;
}

template <DType kDType>
AffineLine encode_group_as(int bits, const float* values, std::size_t count, std::uint8_t* codes) {
  alignas(64) float numbers[kMaxGroup];
  for (std::size_t i = 0; i < count; i += kLanes) {
    store(numbers + i, rounded<kDType>(load<Floats>(values + i)));
  }
  const auto steps = static_cast<float>((1 << bits) - 1);
  const AffineLine line = encode_line(steps, numbers, count, codes);
  return {rounded_one<kDType>(line.scale), rounded_one<kDType>(line.bias)};
}

AffineLine encode_group(
    DType dtype, int bits, const float* values, std::size_t count, std::uint8_t* codes
) {
  return with_dtype(dtype, [&]<DType kDType>() {
    return encode_group_as<kDType>(bits, values, count, codes);
  });
}

template <int kBits, DType kDType>
void encode_affine(
    std::size_t group, const float* values, std::size_t count, const QuantizedBytes& to
) {
  constexpr float kSteps = (1 << kBits) - 1;
  alignas(64) std::uint8_t codes[kMaxGroup];
  for (std::size_t g = 0; g * group < count; ++g, values += group) {
    const AffineLine line = encode_line(kSteps, values, group, codes);
    write_codes<kBits>(codes, group, to.codes + g * group * kBits / 8);
    store_one<kDType>(line.scale, to.scales + g * kBytes<kDType>);
    store_one<kDType>(line.bias, to.biases + g * kBytes<kDType>);
  }
}

// Codes as MLX converts to E4M3, which has no infinity and ends at 448.
Words e4m3_codes(Floats x) {
  const Words sign = bits_of(x) & 0x80000000U;
  const Words bits = bits_of(x) ^ sign;
  const Words small = bits_of(floats_of(bits) + 0x1p14F) - (141U << 23);
  const Words normal = (bits + 0x7ffffU + (bits >> 20 & 1U) - (120U << 23)) >> 20;
  Words code = bits < 121U << 23 ? small : normal;
  code = bits >= 543U << 21 ? 0x7eU + Words{} : code;
  return (code & 0xffU) | sign >> 24;
}

// Ties go to zero, which has no sign. NaN and infinity give 0.
Words e2m1_codes(Floats x) {
  const Floats size = magnitude(x);
  Signed code{};
  for (const float above : {0.25F, 0.75F, 1.25F, 1.75F, 2.5F, 3.5F, 5.0F}) {
    code -= size > above;
  }
  code = size < kInfinity ? code : Signed{};
  const Words bits = load<Words>(&code);
  return bits != 0U ? bits | (bits_of(x) >> 28 & 8U) : Words{};
}

float e4m3_value(unsigned code) {
  const Words magnitude_bits = Words{} + ((code & 0x7fU) << 20);
  const float value = (floats_of(magnitude_bits) * 0x1p120F)[0];
  const float size = (code & 0x7fU) == 0x7fU ? __builtin_nanf("") : value;
  return (code & 0x80U) != 0 ? -size : size;
}

float e2m1_value(unsigned code) {
  constexpr float kSizes[8] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  return (code & 8U) != 0 ? -kSizes[code & 7U] : kSizes[code & 7U];
}

struct Scale {
  float value;
  std::uint8_t code;
};

template <WeightKind kKind, DType kDType>
Scale group_scale(float size) {
  constexpr float kLargest = kKind == WeightKind::kMxfp8 ? 448.0F : 6.0F;
  const float scale = rounded_one<kDType>(size / kLargest);
  if constexpr (kKind == WeightKind::kNvfp4) {
    const auto code = static_cast<std::uint8_t>(e4m3_codes(all(scale))[0]);
    return {e4m3_value(code), code};
  } else {
    float exponent = 0.0F;
    if (scale > 0.0F && scale < kInfinity) {
      exponent = std::ceil(std::log2(scale));
    }
    const int power = static_cast<int>(exponent);
    return {std::ldexp(1.0F, power), static_cast<std::uint8_t>(power + 127)};
  }
}

template <WeightKind kKind>
constexpr std::size_t kGroup = kKind == WeightKind::kNvfp4 ? 16 : 32;

template <WeightKind kKind>
constexpr int kCodeBits = kKind == WeightKind::kMxfp8 ? 8 : 4;

template <WeightKind kKind, DType kDType>
void encode_floats(const float* values, std::size_t count, const QuantizedBytes& to) {
  constexpr std::size_t kSize = kGroup<kKind>;
  alignas(64) std::uint8_t codes[kSize];
  for (std::size_t g = 0; g * kSize < count; ++g, values += kSize) {
    Floats size{};
    for (std::size_t i = 0; i < kSize; i += kLanes) {
      const Floats x = magnitude(load<Floats>(values + i));
      size = x > size ? x : size;
    }
    const Scale scale = group_scale<kKind, kDType>(largest(size));
    for (std::size_t i = 0; i < kSize; i += kLanes) {
      const Floats x = rounded<kDType>(load<Floats>(values + i) / scale.value);
      const Words code = kKind == WeightKind::kMxfp8 ? e4m3_codes(x) : e2m1_codes(x);
      store(codes + i, __builtin_convertvector(code, Bytes));
    }
    write_codes<kCodeBits<kKind>>(codes, kSize, to.codes + g * kSize * kCodeBits<kKind> / 8);
    to.scales[g] = static_cast<std::byte>(scale.code);
  }
}

template <DType kDType>
void encode_as(
    const WeightFormat& format, const float* values, std::size_t count, const QuantizedBytes& to
) {
  const auto group = static_cast<std::size_t>(format.group_size);
  switch (format.kind) {
    case WeightKind::kMxfp4:
      return encode_floats<WeightKind::kMxfp4, kDType>(values, count, to);
    case WeightKind::kNvfp4:
      return encode_floats<WeightKind::kNvfp4, kDType>(values, count, to);
    case WeightKind::kMxfp8:
      return encode_floats<WeightKind::kMxfp8, kDType>(values, count, to);
    default:
      break;
  }
  switch (format.bits) {
    case 2:
      return encode_affine<2, kDType>(group, values, count, to);
    case 3:
      return encode_affine<3, kDType>(group, values, count, to);
    case 4:
      return encode_affine<4, kDType>(group, values, count, to);
    case 5:
      return encode_affine<5, kDType>(group, values, count, to);
    case 6:
      return encode_affine<6, kDType>(group, values, count, to);
    default:
      return encode_affine<8, kDType>(group, values, count, to);
  }
}

float load_dtype(DType dtype, const std::byte* from, std::size_t index) {
  return with_dtype(dtype, [&]<DType kDType>() {
    return load_one<kDType>(from + kBytes<kDType> * index);
  });
}

template <int kBits, DType kDType>
void decode_affine(std::size_t group, const QuantizedView& from, std::size_t count, float* values) {
  alignas(64) std::uint8_t codes[kMaxGroup];
  for (std::size_t g = 0; g * group < count; ++g, values += group) {
    read_codes<kBits>(from.codes + g * group * kBits / 8, group, codes);
    const float scale = rounded_one<kDType>(load_dtype(from.dtype, from.scales, g));
    const float bias = rounded_one<kDType>(load_dtype(from.dtype, from.biases, g));
    for (std::size_t i = 0; i < group; i += kLanes) {
      const Floats code = __builtin_convertvector(load<Bytes>(codes + i), Floats);
      store(values + i, rounded<kDType>(rounded<kDType>(code * scale) + bias));
    }
  }
}

template <WeightKind kKind, DType kDType>
void decode_floats(const QuantizedView& from, std::size_t count, float* values) {
  constexpr std::size_t kSize = kGroup<kKind>;
  constexpr int kBits = kCodeBits<kKind>;
  alignas(64) std::uint8_t codes[kSize];
  for (std::size_t g = 0; g * kSize < count; ++g, values += kSize) {
    read_codes<kBits>(from.codes + g * kSize * kBits / 8, kSize, codes);
    const auto code = static_cast<unsigned>(from.scales[g]);
    const float scale = kKind == WeightKind::kNvfp4
                            ? e4m3_value(code)
                            : rounded_one<kDType>(std::ldexp(1.0F, static_cast<int>(code) - 127));
    for (std::size_t i = 0; i < kSize; ++i) {
      values[i] = kBits == 8 ? e4m3_value(codes[i]) : e2m1_value(codes[i]);
    }
    for (std::size_t i = 0; i < kSize; i += kLanes) {
      store(values + i, rounded<kDType>(load<Floats>(values + i) * scale));
    }
  }
}

template <DType kDType>
void decode_as(
    const WeightFormat& format, const QuantizedView& from, std::size_t count, float* values
) {
  const auto group = static_cast<std::size_t>(format.group_size);
  switch (format.kind) {
    case WeightKind::kMxfp4:
      return decode_floats<WeightKind::kMxfp4, kDType>(from, count, values);
    case WeightKind::kNvfp4:
      return decode_floats<WeightKind::kNvfp4, kDType>(from, count, values);
    case WeightKind::kMxfp8:
      return decode_floats<WeightKind::kMxfp8, kDType>(from, count, values);
    default:
      break;
  }
  switch (format.bits) {
    case 2:
      return decode_affine<2, kDType>(group, from, count, values);
    case 3:
      return decode_affine<3, kDType>(group, from, count, values);
    case 4:
      return decode_affine<4, kDType>(group, from, count, values);
    case 5:
      return decode_affine<5, kDType>(group, from, count, values);
    case 6:
      return decode_affine<6, kDType>(group, from, count, values);
    default:
      return decode_affine<8, kDType>(group, from, count, values);
  }
}

void encode(
    const WeightFormat& format,
    DType dtype,
    const float* values,
    std::size_t count,
    const QuantizedBytes& to
) {
  return with_dtype(dtype, [&]<DType kDType>() {
    return encode_as<kDType>(format, values, count, to);
  });
}

void decode(
    const WeightFormat& format,
    DType dtype,
    const QuantizedView& from,
    std::size_t count,
    float* values
) {
  return with_dtype(dtype, [&]<DType kDType>() {
    return decode_as<kDType>(format, from, count, values);
  });
}

template <DType kDType>
void widen_from(const std::byte* from, std::size_t count, float* to) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store(to + i, load_floats<kDType>(from + i * kBytes<kDType>));
  }
  for (; i < count; ++i) {
    to[i] = load_one<kDType>(from + i * kBytes<kDType>);
  }
}

template <DType kDType>
void narrow_to(const float* from, std::size_t count, std::byte* to) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    store_floats<kDType>(load<Floats>(from + i), to + i * kBytes<kDType>);
  }
  for (; i < count; ++i) {
    store_one<kDType>(from[i], to + i * kBytes<kDType>);
  }
}

void widen(const std::byte* from, DType dtype, std::size_t count, float* to) {
  return with_dtype(dtype, [&]<DType kDType>() { return widen_from<kDType>(from, count, to); });
}

void narrow(const float* from, DType dtype, std::size_t count, std::byte* to) {
  return with_dtype(dtype, [&]<DType kDType>() { return narrow_to<kDType>(from, count, to); });
}

}  // namespace

extern const QuantizeLoops quantize_loops_bodies;
const QuantizeLoops quantize_loops_bodies = {
    .widen = widen,
    .narrow = narrow,
    .encode = encode,
    .decode = decode,
    .encode_group = encode_group,
};

}  // namespace saker::kernels::SAKER_ISA

// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/random_weights.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <memory>
#include <random>

namespace saker::kernels {
namespace {

using Random = std::mt19937_64;

Tensor make_tensor(DType dtype, int rows, int columns) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = {rows, columns};
  const std::size_t size = tensor.nbytes();
  auto bytes = std::make_shared<std::vector<std::byte>>(size + 1);
  tensor.data = std::shared_ptr<const std::byte>(bytes, bytes->data() + 1);
  return tensor;
}

// Calls next() for the bytes of each element.
template <typename Value, typename Next>
Tensor fill(DType dtype, int rows, int columns, Next next) {
  Tensor tensor = make_tensor(dtype, rows, columns);
  auto* at = const_cast<std::byte*>(tensor.data.get());
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    const auto value = static_cast<Value>(next());
    std::memcpy(at + static_cast<std::size_t>(i) * sizeof(Value), &value, sizeof(Value));
  }
  return tensor;
}

// Values of about +-scale, in any float dtype.
Tensor random_floats(DType dtype, int rows, int columns, float scale, Random& random) {
  std::uniform_real_distribution<float> values(-scale, scale);
  switch (dtype) {
    case DType::kFloat32:
      return fill<float>(dtype, rows, columns, [&] { return values(random); });
    case DType::kBFloat16:
      return fill<std::uint16_t>(dtype, rows, columns, [&] {
        return std::bit_cast<std::uint32_t>(values(random)) >> 16;
      });
    default:
      // Halves of exponents from 2^-10 to 2^-1 and both signs.
      return fill<std::uint16_t>(dtype, rows, columns, [&] {
        return (random() & 0x83ff) | (5 + random() % 10) << 10;
      });
  }
}

// Random codes and integer scales; float16 scales of exponents from 2^-10 to 2^-4.
Tensor random_blocks(const WeightFormat& format, int rows, int columns, Random& random) {
  const BlockFormat block = block_format(block_kind(format.kind));
  const auto row_bytes = static_cast<int>(stored_elements(format, columns));
  Tensor tensor = fill<std::uint8_t>(DType::kUInt8, rows, row_bytes, random);
  const BlockKind kind = block_kind(format.kind);
  const bool at_end = kind == BlockKind::kQ6K || kind == BlockKind::kQ2K || kind == BlockKind::kQ3K;
  const int halves = block.zero != 0 ? 1 : 2;
  auto* at = const_cast<std::byte*>(tensor.data.get());
  for (std::size_t i = 0; i < tensor.nbytes(); i += static_cast<std::size_t>(block.bytes)) {
    for (int half = 0; half < halves; ++half) {
      const auto value = static_cast<std::uint16_t>(random() & 0x83ff) |
                         static_cast<std::uint16_t>((5 + random() % 7) << 10);
      const auto bits = static_cast<std::uint16_t>(value);
      const int offset = 2 * half + (at_end ? block.bytes - 2 * halves : 0);
      std::memcpy(at + i + static_cast<std::size_t>(offset), &bits, sizeof(bits));
    }
  }
  return tensor;
}

DType scale_dtype(std::uint64_t seed) {
  constexpr DType kDtypes[3] = {DType::kBFloat16, DType::kFloat16, DType::kFloat32};
  return kDtypes[seed % 3];
}

}  // namespace

std::vector<WeightFormat> all_formats() {
  std::vector<WeightFormat> formats = mlx_formats();
  for (const BlockKind kind : kBlockKinds) {
    formats.push_back(weight_format(kind));
  }
  return formats;
}

std::vector<WeightFormat> mlx_formats() {
  std::vector<WeightFormat> formats = {
      {WeightKind::kFloat32, 0, 0},
      {WeightKind::kFloat16, 0, 0},
      {WeightKind::kBFloat16, 0, 0},
      {WeightKind::kMxfp4, 4, 32},
      {WeightKind::kNvfp4, 4, 16},
      {WeightKind::kMxfp8, 8, 32},
  };
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group : {32, 64, 128}) {
      formats.push_back({WeightKind::kAffine, bits, group});
    }
  }
  return formats;
}

std::string format_name(const WeightFormat& format) {
  constexpr const char* kNames[] = {"f32", "f16", "bf16", "affine", "mxfp4", "nvfp4", "mxfp8"};
  constexpr const char* kBlockNames[] = {
      "Q4_0",
      "Q4_1",
      "Q5_0",
      "Q5_1",
      "Q8_0",
      "Q4_K",
      "Q5_K",
      "Q6_K",
      "Q2_K",
      "Q3_K",
      "IQ4_NL",
      "IQ4_XS"
  };
  const int number = static_cast<int>(format.kind);
  return fmt::format(
      "{} {} bits group {}",
      is_block(format.kind) ? kBlockNames[number - static_cast<int>(BlockKind::kQ40)]
                            : kNames[number],
      format.bits,
      format.group_size
  );
}

WeightTensors random_weight(const WeightFormat& format, int rows, int columns, std::uint64_t seed) {
  Random random(seed);
  WeightTensors tensors;
  const auto words = [&] {
    return fill<std::uint32_t>(DType::kUInt32, rows, columns * format.bits / 32, random);
  };
  if (is_block(format.kind)) {
    tensors.weight = random_blocks(format, rows, columns, random);
    return tensors;
  }
  switch (format.kind) {
    case WeightKind::kFloat32:
      tensors.weight = random_floats(DType::kFloat32, rows, columns, 1.0F, random);
      return tensors;
    case WeightKind::kFloat16:
      tensors.weight = random_floats(DType::kFloat16, rows, columns, 1.0F, random);
      return tensors;
    case WeightKind::kBFloat16:
      tensors.weight = random_floats(DType::kBFloat16, rows, columns, 1.0F, random);
      return tensors;
    case WeightKind::kAffine: {
      const DType dtype = scale_dtype(seed);
      const int groups = columns / format.group_size;
      tensors.weight = words();
      tensors.scales = random_floats(dtype, rows, groups, 0.1F, random);
      tensors.biases = random_floats(dtype, rows, groups, 1.0F, random);
      return tensors;
    }
    default:
      break;
  }
  const bool e8m0 = format.kind != WeightKind::kNvfp4;
  // Codes of E4M3 without its NaN.
  tensors.weight =
      format.bits == 4 ? words() : fill<std::uint32_t>(DType::kUInt32, rows, columns / 4, [&] {
        const auto codes = static_cast<std::uint32_t>(random());
        const std::uint32_t is_nan = ((codes & 0x7f7f7f7fU) + 0x01010101U) & 0x80808080U;
        return codes & ~(is_nan >> 7U);
      });
  tensors.scales = fill<std::uint8_t>(DType::kUInt8, rows, columns / format.group_size, [&] {
    return e8m0 ? 120 + random() % 12 : random() % 0x50;
  });
  return tensors;
}

}  // namespace saker::kernels

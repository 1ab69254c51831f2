// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/packing/pack.h"

#include "saker/kernels/packing/codes.h"

#include "tests/kernels/block_values.h"
#include "tests/kernels/random_weights.h"
#include <gtest/gtest.h>

#include <cassert>
#include <cstring>
#include <string>
#include <vector>

namespace saker::kernels {
namespace {

using Bytes = std::vector<std::byte>;

const std::byte* row_of(const Tensor& tensor, int row) {
  return tensor.data.get() + row * tensor.shape[1] * static_cast<int>(dtype_size(tensor.dtype));
}

// Code number `index` of a row of codes of `bits` bits without gaps, low bits first.
unsigned code_at(const std::byte* row, int index, int bits) {
  unsigned code = 0;
  for (int i = 0; i < bits; ++i) {
    const int bit = index * bits + i;
    code |= (std::to_integer<unsigned>(row[bit / 8]) >> (bit % 8) & 1U) << i;
  }
  return code;
}

float scale_of(const WeightFormat& format, unsigned code) {
  return format.kind == WeightKind::kNvfp4 ? e4m3_value(code) : e8m0_value(code);
}

// The layout of packed_matrix.h value by value.
class SlowPacking {
 public:
  explicit SlowPacking(const PackedMatrix& matrix)
      : matrix_(matrix), bytes_(matrix.block_bytes() * static_cast<std::size_t>(matrix.blocks())) {}

  void add_part(const WeightTensors& tensors, const WeightFormat& format) {
    for (int row = 0; row < tensors.weight.shape[0]; ++row, ++row_) {
      for (int k = 0; k < matrix_.columns; ++k) {
        add_value(tensors, format, row, k);
      }
    }
  }

  // Rows past the end, whose codes are 0, have the scale of code 0.
  void pad(const WeightFormat& format) {
    if (format.kind != WeightKind::kMxfp4 && format.kind != WeightKind::kMxfp8) {
      return;
    }
    for (; row_ % kBlockRows != 0; ++row_) {
      for (int group = 0; group < matrix_.groups(); ++group) {
        const int lane = row_ % kBlockRows;
        matrix_.order == PackedOrder::kTileOrder ? add_tiled_small_scale(group, lane, e8m0_value(0))
                                                 : add_small_scale(group, lane, e8m0_value(0));
      }
    }
  }

  const Bytes& bytes() const { return bytes_; }

 private:
  std::byte* block() {
    return bytes_.data() + static_cast<std::size_t>(row_ / kBlockRows) * matrix_.block_bytes();
  }

  void add_value(const WeightTensors& tensors, const WeightFormat& format, int row, int k) {
    const std::byte* from = row_of(tensors.weight, row);
    const int lane = row_ % kBlockRows;
    switch (format.kind) {
      case WeightKind::kFloat32:
        std::memcpy(block() + 4 * (k * kBlockRows + lane), from + 4 * k, 4);
        return;
      case WeightKind::kFloat16:
        std::memcpy(block() + 2 * (k * kBlockRows + lane), from + 2 * k, 2);
        return;
      case WeightKind::kBFloat16:
        std::memcpy(bf16_place(lane, k), from + 2 * k, 2);
        return;
      case WeightKind::kAffine:
        add_code(tensors, code_at(from, k, format.bits), row, k);
        return;
      default:
        matrix_.order == PackedOrder::kTileOrder ? add_tiled_small_code(tensors, format, row, k)
                                                 : add_small_code(tensors, format, row, k);
    }
  }

  std::byte* bf16_place(int lane, int k) {
    return matrix_.order == PackedOrder::kTileOrder
               ? block() + 2 * ((k / 32 * kBlockRows + lane) * 32 + k % 32)
               : block() + 4 * (k / 2 * kBlockRows + lane) + k % 2 * 2;
  }

  void add_small_code(const WeightTensors& tensors, const WeightFormat& format, int row, int k) {
    const int lane = row_ % kBlockRows;
    const int group = k / matrix_.group;
    const int in_group = k % matrix_.group;
    std::byte* at = block() + static_cast<std::size_t>(group) * matrix_.group_bytes();
    const int codes = 32 / format.bits;  // Of a word.
    const int bit = in_group % codes * format.bits;
    at[4 * (in_group / codes * kBlockRows + lane) + bit / 8] |=
        static_cast<std::byte>(code_at(row_of(tensors.weight, row), k, format.bits) << (bit % 8));
    const auto code = std::to_integer<unsigned>(row_of(*tensors.scales, row)[group]);
    add_small_scale(group, lane, scale_of(format, code));
  }

  void add_small_scale(int group, int lane, float scale) {
    const auto bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(scale) >> 16);
    const std::size_t at = static_cast<std::size_t>(group) * matrix_.group_bytes();
    const int words = matrix_.group * matrix_.code_bits / 8 * kBlockRows;
    std::memcpy(block() + at + words + 2 * lane, &bits, sizeof(bits));
  }

  void add_tiled_byte(unsigned code, int k) {
    std::byte* chunk = block() + static_cast<std::size_t>(k / 128) * matrix_.chunk_bytes();
    chunk[row_ % kBlockRows * 128 + k % 128] = static_cast<std::byte>(code);
  }

  void add_tiled_nibble(unsigned code, int k) {
    std::byte* chunk = block() + static_cast<std::size_t>(k / 128) * matrix_.chunk_bytes();
    const int at = row_ % kBlockRows * 64 + 2 * (k % 32);
    const int bit = k % 128 / 32 * 4;
    chunk[at + bit / 8] |= static_cast<std::byte>(code << (bit % 8));
  }

  void add_tiled_small_code(
      const WeightTensors& tensors, const WeightFormat& format, int row, int k
  ) {
    const unsigned value = code_at(row_of(tensors.weight, row), k, format.bits);
    format.bits == 4 ? add_tiled_nibble(value, k) : add_tiled_byte(value, k);
    const int group = k / format.group_size;
    const auto code = std::to_integer<unsigned>(row_of(*tensors.scales, row)[group]);
    add_tiled_small_scale(group, row_ % kBlockRows, scale_of(format, code));
  }

  void add_tiled_small_scale(int group, int lane, float scale) {
    const auto bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(scale) >> 16);
    const int groups = 128 / matrix_.group;  // Of a chunk.
    const std::size_t chunk = static_cast<std::size_t>(group / groups) * matrix_.chunk_bytes();
    const int at = lane * groups + group % groups;
    const int codes = kBlockRows * 128 * matrix_.code_bits / 8;
    std::memcpy(block() + chunk + codes + 2 * at, &bits, sizeof(bits));
  }

  void add_code(const WeightTensors& tensors, unsigned code, int row, int k) {
    const int lane = row_ % kBlockRows;
    const int group = k / matrix_.group;
    const int in_group = k % matrix_.group;
    std::byte* at = block() + static_cast<std::size_t>(group) * matrix_.group_bytes();
    for (int bit = 0; bit < matrix_.code_bits; ++bit) {
      const int place = matrix_.is_narrow() ? narrow_place(in_group, bit, lane)
                                            : place_in_words(in_group, bit, lane);
      at[place / 8] |= static_cast<std::byte>((code >> bit & 1U) << (place % 8));
    }
    const auto size = static_cast<int>(scale_bytes(matrix_.scale_kind));
    std::byte* scales = at + matrix_.code_bits * matrix_.group * kBlockRows / 8;
    std::memcpy(scales + lane * size, row_of(*tensors.scales, row) + group * size, size);
    std::memcpy(
        scales + (kBlockRows + lane) * size, row_of(*tensors.biases, row) + group * size, size
    );
  }

  // Where a bit of column k of a group lies, counted in bits from the group's begin.
  int place_in_words(int k, int bit, int lane) const {
    const int field = matrix_.kind == PackedKind::kNibble ? 4 : 8;
    const int codes = 32 / field;
    return 32 * (k / codes * kBlockRows + lane) + k % codes * field + bit;
  }

  int narrow_place(int k, int bit, int lane) const {
    switch (matrix_.code_bits) {
      case 2:
        return place_of_two_bits(k, bit, lane);
      case 3:
        return place_of_three_bits(k, bit, lane);
      default:
        return place_of_bytes(k, bit, lane);
    }
  }

  // Runs of 16 columns. Byte i of a word has columns 2 i and 2 i + 1, then these plus 8.
  static int place_of_two_bits(int k, int bit, int lane) {
    const int column = k % 16;
    const int run = k / 16 * kBlockRows * 32;
    return run + 32 * lane + column % 8 / 2 * 8 + column / 8 * 4 + column % 2 * 2 + bit;
  }

  // Runs of 16 columns: a line, then 32 bytes.
  static int place_of_three_bits(int k, int bit, int lane) {
    const int column = k % 16;
    const int pair = column / 8 * 4 + column % 4;
    const int upper = column % 8 / 4 * 16;  // The half of a word.
    const int run = k / 16 * 96 * 8;
    if (pair < 5 || (pair == 7 && bit == 2)) {
      return run + 32 * lane + upper + (pair == 7 ? 15 : 3 * pair + bit);
    }
    return run + 64 * 8 + 32 * (lane % 8) + lane / 8 * 8 + upper + 3 * (pair - 5) + bit;
  }

  // Codes of 5 bits lie in runs of 32 columns, those of 6 bits in runs of 16.
  int place_of_bytes(int k, int bit, int lane) const {
    const bool five = matrix_.code_bits == 5;
    const int columns = five ? 32 : 16;
    const int column = k % columns;
    const int pair = column / 4 * 2 + column % 2;
    const int whole = five ? 3 : 2;  // Of a half.
    int line = pair / whole;
    int shift = pair % whole * matrix_.code_bits + bit;
    if (five && pair == 15) {
      line = bit;
      shift = 15;
    } else if (!five && pair >= 6) {
      line = bit < 4 ? pair - 6 : 2;
      shift = bit < 4 ? 12 + bit : 12 + 2 * (pair - 6) + bit - 4;
    }
    const int run = k / columns * (five ? 5 : 3) * kBlockRows * 32;
    return run + 32 * (line * kBlockRows + lane) + column % 4 / 2 * 16 + shift;
  }

  PackedMatrix matrix_;
  Bytes bytes_;
  int row_ = 0;
};

void expect_layout(
    const WeightFormat& format,
    const std::vector<int>& part_rows,
    int columns,
    const PackedOrders& orders
) {
  for (const std::uint64_t seed : {0, 1, 2}) {
    std::vector<WeightTensors> parts;
    int rows = 0;
    for (const int count : part_rows) {
      parts.push_back(random_weight(format, count, columns, seed + 3 * parts.size()));
      rows += count;
    }
    const Tensor& typed = parts[0].scales ? *parts[0].scales : parts[0].weight;
    const PackedMatrix matrix = packed_layout(rows, columns, format, typed.dtype, orders);
    SlowPacking expected(matrix);
    for (const WeightTensors& part : parts) {
      expected.add_part(part, format);
    }
    expected.pad(format);
    Bytes got(expected.bytes().size(), std::byte{0xa5});
    pack_rows(parts, format, matrix, got.data());
    EXPECT_TRUE(got == expected.bytes())
        << format_name(format) << ", " << rows << " rows of " << columns << " columns";
  }
}

void expect_layouts(const WeightFormat& format, const std::vector<int>& part_rows, int columns) {
  using enum PackedOrder;
  for (const PackedOrder order : {kInterleavedNr16, kTileOrder}) {
    const PackedOrders orders = {.small_floats = order, .bf16 = order};
    expect_layout(format, part_rows, columns, orders);
  }
}

TEST(Pack, EveryFormatLiesAsPackedMatrixSays) {
  for (const WeightFormat& format : mlx_formats()) {
    const int group = format.group_size;
    for (const int columns : {1, 5, 37}) {
      // Rows without groups of odd lengths; with groups several chunks and a part of one.
      expect_layouts(format, {16, 33}, group == 0 ? 9 * columns + columns % 3 : columns * group);
    }
  }
}

TEST(Pack, PartsBeginAnywhereInABlock) {
  for (const WeightFormat& format : mlx_formats()) {
    const int columns = format.group_size == 0 ? 19 : 3 * format.group_size;
    expect_layouts(format, {1}, columns);
    expect_layouts(format, {15, 1, 1}, columns);
    expect_layouts(format, {3, 20, 9, 40}, columns);
  }
}

// Every weight is the file's, and takes the file's bytes.
TEST(Pack, BlocksKeepTheirWeights) {
  const PackedOrders orders = {
      .small_floats = PackedOrder::kInterleavedNr16, .bf16 = PackedOrder::kInterleavedNr16
  };
  for (const BlockKind kind : kBlockKinds) {
    const WeightFormat format = weight_format(kind);
    for (const int blocks : {1, 3}) {
      const int columns = blocks * block_format(kind).columns;
      const WeightTensors first = random_weight(format, 21, columns, 1);
      const WeightTensors second = random_weight(format, 16, columns, 2);
      const PackedMatrix layout = packed_layout(37, columns, format, DType::kUInt8, orders);
      EXPECT_EQ(layout.block_bytes(), 16 * stored_elements(format, columns));
      Bytes bytes(layout.block_bytes() * static_cast<std::size_t>(layout.blocks()));
      PackedMatrix matrix = layout;
      matrix.data = bytes.data();
      pack_rows({first, second}, format, layout, bytes.data());
      auto expected = block_values(first.weight, kind);
      const auto tail = block_values(second.weight, kind);
      expected.insert(expected.end(), tail.begin(), tail.end());
      std::vector<float> values(expected.size());
      for (int row = 0; row < 37; ++row) {
        unpack_row(matrix, row, values.data() + static_cast<std::size_t>(row) * columns);
      }
      EXPECT_EQ(values, expected) << format_name(format);
    }
  }
}

}  // namespace
}  // namespace saker::kernels

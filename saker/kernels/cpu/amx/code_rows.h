// SPDX-License-Identifier: Apache-2.0
#pragma once

// Up to 16 rows of x times NR blocks of affine codes on tiles, in memory order of the codes: memory
// bandwidth limits this product. While tiles multiply a group, vectors unpack the next one and add
// up the one before. The bits are those of code_panels.h.

#include "saker/kernels/cpu/amx/code_inputs.h"
#include "saker/kernels/cpu/amx/code_unpack.h"

namespace saker::kernels::SAKER_ISA {

// For kRows rows of x: sums of their upper bytes' products with a group, then of their lower
// bytes'.
template <int kRows>
using RowSums = std::uint32_t[2 * kRows][kLanes];

// kRows rows of x times a group's codes. Eight rows of upper and lower bytes fill one tile, sixteen
// fill two. kTurn, 0 or 1, selects the registers.
template <int kGroup, int kRows, int kTurn>
[[gnu::always_inline]] inline void multiply_group(
    const std::byte* x, const std::byte* codes, RowSums<kRows>& products
) {
  constexpr int kTiles = 2 * kRows / kTileHeight;
  constexpr int kSteps = kGroup > kByteColumns ? kGroup / kByteColumns : 1;
  constexpr int kSums = 2 * kTurn;
  constexpr int kInputs = kTiles == 1 ? kLeft + kTurn : kLeft;
  constexpr int kCodes = kRight + kTurn;
  unroll<kTiles>([](auto t) { tile_clear<kSums + t.kValue>(); });
  unroll<kSteps>([&](auto step) {
    tile_load<kCodes>(codes + step.kValue * kTileBytes, kTileStride);
    unroll<kTiles>([&](auto t) {
      constexpr int kAt = (step.kValue * kTiles + t.kValue) * kTileBytes;
      tile_load<kInputs + t.kValue>(x + kAt, kTileStride);
      tile_add_byte_products<kSums + t.kValue, kInputs + t.kValue, kCodes>();
    });
  });
  unroll<kTiles>([&](auto t) {
    tile_store<kSums + t.kValue>(products[t.kValue * kTileHeight], kTileStride);
  });
}

// The product of kRows rows, the last of which may be zeros, with one block after the other.
template <typename Format, int kGroup, int kRows>
class CodeRows {
 public:
  CodeRows(const PackedMatrix& weight, const LinearTile& tile)
      : weight_(weight),
        tile_(tile),
        x_(code_micro_panel(weight, tile.micro_panels, tile.prepared, 0)),
        group_bytes_(kWordBytes + weight.term_bytes()) {}

  void multiply(int block) {
    F32x16 y[kRows];
    unroll<kRows>([&](auto r) { y[r.kValue] = zero(); });
    const int groups = weight_.groups();
    const int at_once = weight_.is_widened() ? kWideGroups : groups;
    for (int first = 0; first < groups; first += at_once) {
      multiply_groups(block, first, smaller(first + at_once, groups), y);
    }
    // Unrolled with constants, so that y stays in registers.
    unroll<kRows>([&](auto r) {
      if (r.kValue < tile_.micro_panels.rows) {
        store_result(weight_, tile_, r.kValue, block, y[r.kValue]);
      }
    });
  }

 private:
  static constexpr int kWideGroups = 8;
  static constexpr std::size_t kWordBytes = 2 * kGroup * kBlockRows / Format::kPairDistance;

  // Some groups of a block. codes_at points to the codes of number `group`, the next one on tiles.
  struct Pass {
    const std::byte* codes_at;
    Prefetcher ahead;
    int group;
    int first;
    int end;
  };

  [[gnu::always_inline]] void multiply_groups(int block, int first, int end, F32x16 (&y)[kRows]) {
    const std::byte* at = weight_.block(block) + first * weight_.group_bytes();
    const std::size_t step = kLineBytes * weight_.group_bytes() / group_bytes_;
    Pass pass = {at, {at + kPrefetchDistance, step}, first, first, end};
    if (weight_.is_widened()) {
      pass.codes_at = widen(weight_, block, 1, first, end - first, wide_).at;
    }
    unpack_lines<Format, kGroup>(pass.codes_at, codes_[0]);
    while (pass.group + 2 <= end) {
      multiply_one<0>(pass, y);
      multiply_one<1>(pass, y);
    }
    if (pass.group < end) {
      multiply_one<0>(pass, y);
      add<0>(pass, y);
    } else {
      add<1>(pass, y);
    }
  }

  // Multiplies a group on tiles, while vectors unpack the one after it and add up the one before.
  template <int kTurn>
  [[gnu::always_inline]] void multiply_one(Pass& pass, F32x16 (&y)[kRows]) {
    if (pass.group + 1 < pass.end) {
      pass.ahead.ask(kWordBytes);
      pass.ahead.ask(kLineBytes);
      unpack_lines<Format, kGroup>(pass.codes_at + group_bytes_, codes_[1 - kTurn]);
    }
    multiply_group<kGroup, kRows, kTurn>(x_at(pass.group), codes_[kTurn], products_[kTurn]);
    if (pass.group > pass.first) {
      add<1 - kTurn>(pass, y);
    }
    ++pass.group;
    pass.codes_at += group_bytes_;
  }

  // Adds up the products of the group before.
  template <int kTurn>
  [[gnu::always_inline]] void add(const Pass& pass, F32x16 (&y)[kRows]) {
    const float* numbers = x_.numbers + (pass.group - 1) * kRowNumbers;
    const GroupScaleBias terms =
        load_terms<Format>(weight_, pass.codes_at - group_bytes_ + kWordBytes);
    const RowSums<kRows>& products = products_[kTurn];
    unroll<kRows>([&](auto r) {
      constexpr int kRow = r.kValue;
      const U32x16 sum = integer_sums(products[kRow], products[kRows + kRow]);
      y[kRow] = add_group<Format, kTileHeight>(y[kRow], sum, numbers, kRow, terms);
    });
  }

  const std::byte* x_at(int group) const {
    const std::ptrdiff_t k = std::ptrdiff_t{group} * kGroup;
    return x_.inputs + k / kByteColumns * (2 * kByteColumns * kRows) + k % kByteColumns;
  }

  const PackedMatrix& weight_;
  const LinearTile& tile_;
  CodeMicroPanel x_;
  std::size_t group_bytes_;
  alignas(64) std::byte codes_[2][kGroup * kBlockRows];
  alignas(64) RowSums<kRows> products_[2];
  alignas(64) std::byte wide_[kWideGroups * kWideGroupBytes];  // See widen().
};

template <typename Format>
void multiply_code_rows(const PackedMatrix& weight, const LinearTile& tile) {
  with_group<16>(weight, [&]<int kGroup>() {
    const Tiles registers(kTileHeight, kBlockRows, smaller(kGroup, kByteColumns) / 4);
    const auto multiply = [&]<int kRows>(Index<kRows>) {
      CodeRows<Format, kGroup, kRows> rows(weight, tile);
      for (int b = 0; b < tile.block_count; ++b) {
        rows.multiply(tile.first_block + b);
      }
    };
    if (code_width(tile.micro_panels) == kTileHeight) {
      multiply(Index<kTileHeight>());
    } else {
      multiply(Index<kTileHeight / 2>());
    }
  });
}

}  // namespace saker::kernels::SAKER_ISA

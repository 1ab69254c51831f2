// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows of x times NR blocks of affine codes on tiles. Codes are bytes there and x is two signed
// bytes. A tile's sums of a group are exact, so the bits are those of cpu/gemm/few_rows.h. The sums
// of upper and lower bytes leave the tiles group by group. While tiles work on a block, vectors add
// up the one before.

#include "saker/kernels/cpu/amx/code_inputs.h"
#include "saker/kernels/cpu/amx/code_unpack.h"

namespace saker::kernels::SAKER_ISA {

// The working memory of a thread.
struct CodeMemory {
  PanelCodes codes;
  alignas(64) ByteSums products[2][2];  // By turn: upper bytes' sums, lower bytes' sums.
  alignas(64) float sums[kPanelMicroPanels][kTileBlocks][kTileHeight][kBlockRows];
};

// A block whose products with a group of a micro-panel are in memory; null before the first one.
struct DoneBlock {
  const ByteSums* products = nullptr;
  const float (*terms)[kBlockRows] = nullptr;  // See PanelCodes.
  const float* numbers = nullptr;              // For the rows of x.
  float (*sums)[kBlockRows] = nullptr;         // [rows of x]
  int width = 0;
};

template <typename Format>
[[gnu::always_inline]] inline void add_row(
    const DoneBlock& done, const GroupScaleBias& terms, int row
) {
  const U32x16 sum = integer_sums(done.products[0][row], done.products[1][row]);
  float* to = done.sums[row];
  store(to, add_group<Format, kTileHeight>(load(to), sum, done.numbers, row, terms));
}

// Adds half of the rows of a block to their sums. kWhole: there are sixteen rows.
template <typename Format, int half, bool kWhole>
[[gnu::always_inline]] inline void add_half(const DoneBlock& done) {
  constexpr int kRows = kTileHeight / 2;
  constexpr int kFirst = half * kRows;
  if (done.products == nullptr) {
    return;
  }
  const GroupScaleBias terms = {load(done.terms[0]), load(done.terms[1])};
  if constexpr (kWhole) {
#pragma GCC unroll 8
    for (int row = kFirst; row < kFirst + kRows; ++row) {
      add_row<Format>(done, terms, row);
    }
  } else {
    for (int row = kFirst; row < smaller(kFirst + kRows, done.width); ++row) {
      add_row<Format>(done, terms, row);
    }
  }
}

// Rows of x from a group's first column on, and the same group in the next micro-panel.
struct GroupRows {
  const std::byte* upper;
  std::ptrdiff_t lower;  // From upper to lower bytes; twice that is a step.
  const std::byte* next;
};

// Prefetches part of a group of the next micro-panel into L1.
template <int kGroup, int kPart, int kParts, bool kWhole>
[[gnu::always_inline]] inline void prefetch_rows(const GroupRows& x) {
  const std::ptrdiff_t row_bytes = kWhole ? kTileBytes : x.lower;
  const std::ptrdiff_t part = 2 * row_bytes * kGroup / kByteColumns / kParts;
#pragma GCC unroll 8
  for (std::ptrdiff_t i = 0; i < part; i += kLineBytes) {
    __builtin_prefetch(x.next + kPart * part + i, 0, 3);
  }
}

// Multiplies a group of a micro-panel by block kBlock of kBlocks, whose codes lie at `codes`, into
// `products`. Adds up `done` meanwhile. Where a group is one step of the tiles, its rows of x stay
// in their registers from block to block.
template <typename Format, int kGroup, int kBlocks, int kBlock, bool kWhole>
[[gnu::always_inline]] inline void multiply_block(
    const GroupRows& x, const std::byte* codes, ByteSums* products, const DoneBlock& done
) {
  constexpr int kSteps = kGroup > kByteColumns ? kGroup / kByteColumns : 1;
  constexpr bool kLoads = kBlock == 0 || kSteps > 1;
  constexpr int kUpper = kBlock % 2 * 2;
  constexpr int kLower = kUpper + 1;
  constexpr int kCodes = kRight + kBlock % 2;
  for (int step = 0; step < kSteps; ++step) {
    const std::byte* upper = x.upper + step * 2 * x.lower;
    if constexpr (kLoads) {
      tile_load<kLeft>(upper, kTileStride);
    }
    tile_load<kCodes>(codes + step * kTileBytes, kTileStride);
    if (step == 0) {
      tile_clear<kUpper>();
    }
    tile_add_byte_products<kUpper, kLeft, kCodes>();
    if (step == kSteps - 1) {
      prefetch_rows<kGroup, 2 * kBlock, 2 * kBlocks, kWhole>(x);
      add_half<Format, 0, kWhole>(done);
    }
    if constexpr (kLoads) {
      tile_load<kLeft + 1>(upper + x.lower, kTileStride);
    }
    if (step == 0) {
      tile_clear<kLower>();
    }
    tile_add_byte_products<kLower, kLeft + 1, kCodes>();
  }
  tile_store<kUpper>(products[0], kTileStride);
  prefetch_rows<kGroup, 2 * kBlock + 1, 2 * kBlocks, kWhole>(x);
  add_half<Format, 1, kWhole>(done);
  tile_store<kLower>(products[1], kTileStride);
}

// Multiplies the tile's micro-panels by a panel and adds the products to their sums.
template <typename Format, int kGroup, int kBlocks, bool kWhole>
void multiply_panel(
    const PackedMatrix& weight, const LinearTile& tile, const CodePanel& panel, CodeMemory& memory
) {
  const std::size_t micro_panel_bytes =
      code_micro_panel_bytes(weight, tile.micro_panels.first_row(1));
  DoneBlock done;
  int turn = 0;
  for (int s = 0; s < tile.micro_panel_count; ++s) {
    const CodeMicroPanel x =
        code_micro_panel(weight, tile.micro_panels, tile.prepared, tile.first_micro_panel + s);
    auto* const sums = memory.sums[s] + (panel.first_block - tile.first_block);
    for (int g = 0; g < panel.groups; ++g) {
      const int group = panel.first_group + g;
      if (s == 0) {
        prefetch_codes(weight, panel, g);
      }
      const std::byte* upper = x.upper(group * kGroup);
      const GroupRows rows = {upper, x.upper_bytes(), upper + micro_panel_bytes};
      unroll<kBlocks>([&](auto b) {
        constexpr int kBlock = b.kValue;
        const std::byte* codes = memory.codes.bytes[kBlock] + g * kGroup * kBlockRows;
        ByteSums* const products = memory.products[turn];
        multiply_block<Format, kGroup, kBlocks, kBlock, kWhole>(rows, codes, products, done);
        const float* numbers = x.numbers + group * kRowNumbers;
        done = {products, memory.codes.terms[g][kBlock], numbers, sums[kBlock], x.width};
        turn ^= 1;
      });
    }
  }
  add_half<Format, 0, kWhole>(done);
  add_half<Format, 1, kWhole>(done);
}

template <typename Format, int kGroup, bool kWhole>
void multiply_panels(const PackedMatrix& weight, const LinearTile& tile, CodeMemory& memory) {
  constexpr int kAtOnce = kCodePanelColumns / kGroup;
  CodePanel panel = {};
  for (; panel.first_group < weight.groups(); panel.first_group += kAtOnce) {
    panel.groups = smaller(kAtOnce, weight.groups() - panel.first_group);
    for (int b = 0; b < tile.block_count; b += panel.blocks) {
      panel.first_block = tile.first_block + b;
      panel.blocks = tile.block_count - b >= kCodeBlocks ? kCodeBlocks : 1;
      unpack_codes<Format, kGroup>(weight, panel, memory.codes);
      if (panel.blocks == kCodeBlocks) {
        multiply_panel<Format, kGroup, kCodeBlocks, kWhole>(weight, tile, panel, memory);
      } else {
        multiply_panel<Format, kGroup, 1, kWhole>(weight, tile, panel, memory);
      }
    }
  }
}

template <typename Format>
void multiply_codes(const PackedMatrix& weight, const LinearTile& tile) {
  alignas(64) thread_local CodeMemory memory;
  __builtin_memset(memory.sums, 0, tile.micro_panel_count * sizeof(*memory.sums));
  {
    const int words = smaller(weight.group, kByteColumns) / 4;
    const Tiles registers(tile.micro_panels.first_row(1), kBlockRows, words);
    with_group<16>(weight, [&]<int kGroup>() {
      tile.micro_panels.first_row(1) == kTileHeight
          ? multiply_panels<Format, kGroup, true>(weight, tile, memory)
          : multiply_panels<Format, kGroup, false>(weight, tile, memory);
    });
  }
  for (int s = 0; s < tile.micro_panel_count; ++s) {
    const int first = tile.micro_panels.first_row(tile.first_micro_panel + s);
    const int end = tile.micro_panels.first_row(tile.first_micro_panel + s + 1);
    for (int row = first; row < end; ++row) {
      for (int b = 0; b < tile.block_count; ++b) {
        const F32x16 y = load(memory.sums[s][b][row - first]);
        store_result(weight, tile, row, tile.first_block + b, y);
      }
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA

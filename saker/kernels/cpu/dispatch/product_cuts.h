// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products cut into what threads claim: micro-panels of prepared rows, and tiles of results. Only
// this folder includes it.

#include "saker/kernels/cpu/dispatch/linear_bodies.h"
#include "saker/kernels/cpu/dispatch/multiply.h"

#include <cstddef>
#include <span>
#include <vector>

namespace saker::kernels {

// How one product is cut. Prepared micro-panels and tiles are numbered through all products.
struct Cut {
  RowProduct product;
  int index = 0;  // The product's place among all.
  LinearTile whole;
  std::size_t prepared_at = 0;  // Offset in the prepared bytes.
  int first_micro_panel = 0;
  int first_tile = 0;
  int row_tiles = 0;
  int row_step = 0;    // Micro-panels per tile.
  int block_step = 0;  // NR blocks per tile.

  int tiles() const;
};

struct Cuts {
  std::vector<Cut> cuts;  // Without products of no rows.
  std::size_t prepared_bytes = 0;
  int rows = 0;  // Prepared rows.
  int micro_panels = 0;
  int tiles = 0;

  const Cut& of_tile(int index) const;
  const Cut& of_micro_panel(int index) const;
  // Sets where the prepared rows lie: prepared_bytes of memory.
  void place(const std::byte* prepared);
};

void cut_products(const LinearBodies& bodies, std::span<const RowProduct> products, Cuts& result);

// Prepares micro-panel `index` of a cut into the memory that holds the rows of all.
void prepare_micro_panel(
    const LinearBodies& bodies, const Cut& cut, int index, std::byte* prepared
);

// Prepares the rows of all cuts, on one thread if they are few.
void prepare_rows(const LinearBodies& bodies, const Cuts& cuts, std::byte* prepared);

// Computes tile `index` of a cut.
void multiply_tile(const LinearBodies& bodies, const Cut& cut, int index);

// Distributes `tiles` tiles: turn t goes to part t % parts, and each part's tiles are adjacent. So
// threads that claim turns in order each move along their own part of the weights.
int tile_of_turn(int turn, int tiles, int parts);

}  // namespace saker::kernels

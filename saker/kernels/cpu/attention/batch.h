// SPDX-License-Identifier: Apache-2.0
#pragma once

// The rows of a tile against one block of keys, and the groups in which they are multiplied. The
// bits of a row do not depend on its group.

#include "saker/kernels/cpu/attention/mask_nonfinite.h"
#include "saker/kernels/cpu/attention/products.h"
#include "saker/kernels/cpu/attention/softmax.h"
#include "saker/kernels/cpu/attention/state.h"

namespace saker::kernels::SAKER_ISA {

// Works on rows of a tile and one block: first all scores, then all weights, then all values. So
// products come in long runs, and results of one step have reached memory when the next one loads
// them.
template <typename Products>
class Batch {
 public:
  explicit Batch(const AttendShape& shape) : shape_(shape) {}

  // Starts on rows of a block. `values` is the page's memory, even if the block points to a masked
  // copy.
  void start(const Block& block, const std::byte* values, const State& state) {
    block_ = block;
    values_ = values;
    state_ = state;
    count_ = 0;
    rows_ = 0;
  }

  // Memory for the keys that the next group's rows see.
  BlockKeys* keys() { return keys_ + rows_; }

  // Adds rows [first, first + rows) of the tile. REQUIRES: keys() is filled in.
  void add(int first, int rows, bool whole) {
    groups_[count_++] = {first, rows, whole, keys()};
    rows_ += rows;
  }

  void run() {
    each_group([&](const Block& block, const RowGroup& group) {
      registers_.set_rows(group.rows);
      Products::score(shape_, block, group);
    });
    const State state = state_;
    each_group([&](const Block& block, const RowGroup& group) {
      apply_softmax<Products>(shape_, block, group, state);
    });
    each_group([&](const Block& block, const RowGroup& group) {
      registers_.set_rows(group.rows);
      Products::add_values(shape_, block, group, state);
      if constexpr (Products::kWholeBlocks) {
        if (values_ != block.values) {
          add_values_left_out(shape_, block, group, state, values_);
        }
      }
    });
  }

 private:
  template <typename Step>
  [[gnu::always_inline]] void each_group(const Step& step) {
    Block block = block_;
    for (int g = 0; g < count_; ++g) {
      step(block, groups_[g]);
      block.scores += groups_[g].rows * kBlock;
      block.weights += groups_[g].rows * kBlock / 2;
    }
  }

  const AttendShape& shape_;
  State state_{};
  Block block_{};
  const std::byte* values_ = nullptr;
  RowGroup groups_[kAttendBatchRows] = {};
  BlockKeys keys_[kAttendBatchRows] = {};
  typename Products::Registers registers_;
  int count_ = 0;
  int rows_ = 0;
};

// Makes groups of the runs of rows in [first, end) that see the block.
template <typename Products>
void add_group(
    const AttendShape& shape,
    const AttendTile& tile,
    std::int64_t block_begin,
    int first,
    int end,
    Batch<Products>& batch
) {
  const auto sees_block = [&](int row, BlockKeys& keys) {
    keys = keys_in_block(tile.seen[(tile.first + row) / shape.group], block_begin);
    return sees(keys);
  };
  for (int row = first; row < end; ++row) {
    BlockKeys* keys = batch.keys();
    const int begin = row;
    while (row < end && sees_block(row, keys[row - begin])) {
      ++row;
    }
    if (row > begin) {
      batch.add(begin, row - begin, false);
    }
  }
}

// Makes groups of nearly equal size of rows [first, end).
template <typename Products>
void add_groups(
    const AttendShape& shape,
    const AttendTile& tile,
    std::int64_t block_begin,
    int first,
    int end,
    Batch<Products>& batch
) {
  // From row to row, both ends of the visible keys only grow.
  const SeenKeys& first_seen = tile.seen[(tile.first + first) / shape.group];
  const SeenKeys& last_seen = tile.seen[(tile.first + end - 1) / shape.group];
  const bool whole = last_seen.begin <= block_begin && first_seen.end >= block_begin + kBlock;
  const int count = end - first;
  const int groups = (count + Products::kGroupRows - 1) / Products::kGroupRows;
  for (int g = 0; g < groups; ++g) {
    const int from = first + g * count / groups;
    const int to = first + (g + 1) * count / groups;
    if (whole) {
      for (int row = from; row < to; ++row) {
        batch.keys()[row - from] = {0, 0, 0, kBlock};
      }
      batch.add(from, to - from, true);
    } else {
      add_group(shape, tile, block_begin, from, to, batch);
    }
  }
}

}  // namespace saker::kernels::SAKER_ISA

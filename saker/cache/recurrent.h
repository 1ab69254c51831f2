// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state of a layer that replaces its memory with every row instead of keeping rows: mlx-lm's
// ArraysCache. It can go back only to known states: snapshots, the beginning of the open
// transaction, and states that replaying the transaction's rows gives.

#include "saker/cache/layer_cache.h"
#include "saker/kernels/cpu/runtime/memory_account.h"
#include "saker/kernels/mx.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace saker::cache {

// Arrays of fixed shapes, evaluated with the pass that makes them. Immutable.
using RecurrentState = std::vector<mx::array>;

// A state that several caches and snapshots share; its bytes count once.
struct HeldState {
  RecurrentState arrays;
  std::shared_ptr<const kernels::HeldBytes> bytes;
};

HeldState held_state(RecurrentState state);

class RecurrentCache final : public LayerCache {
 public:
  // Computes the state after the first `count` rows of one `advance`; 0 < count < all of them.
  using Replay = std::function<RecurrentState(int count)>;

  // `empty`: the state before the first row, all float32.
  explicit RecurrentCache(RecurrentState empty);

  const RecurrentState& state() const { return state_.arrays; }

  // `state` is the state after `row_count` more rows. Without a replay, a transaction can keep
  // these rows only as a whole. REQUIRES: the shapes of the empty state.
  void advance(int row_count, RecurrentState state, Replay replay);
  // Sets the state after the first `offset` rows. Throws kInvalidArgument for other shapes; then
  // nothing has changed. REQUIRES: no open transaction.
  void assign_state(std::int64_t offset, RecurrentState state);

  std::string_view kind() const override { return "ArraysCache"; }

  // Throw kInternal: there are no rows to attend to.
  KeyValues update(const mx::array& keys, const mx::array& values) override;
  kernels::AttendSpan append(int first_row, int row_count) override;

  std::int64_t offset() const override { return offset_; }

  std::optional<int> max_size() const override { return std::nullopt; }

  std::optional<KeyValues> view() const override { return std::nullopt; }

  // All rows or none.
  bool can_trim(std::int64_t count) const override { return count <= 0 || count >= offset_; }

  std::int64_t trim(std::int64_t count) override;
  void clear() override;

  Mask make_mask(int /*n*/, int /*window*/) const override { return {}; }

  std::size_t nbytes() const override;

  // A pass has the states before and after it.
  std::size_t growth(std::int64_t row_count) const override { return row_count > 0 ? nbytes() : 0; }

  std::size_t bytes_with(std::int64_t row_count, int /*step*/) const override {
    return nbytes() + growth(row_count);
  }

  std::unique_ptr<LayerCache> copy() const override;

  LayerSnapshotPtr snapshot(std::int64_t from) const override;
  LayerSnapshotPtr snapshot_of(const BlockSource& blocks, std::int64_t first, std::int64_t last)
      const override;
  std::int64_t reach(const LayerSnapshot& rows, std::int64_t target) const override;
  bool restore(const LayerSnapshot* rows, std::int64_t target) override;

  bool restores_anywhere() const override { return false; }

  void begin() override;
  bool can_commit(std::int64_t count) const override;
  void commit(std::int64_t count) override;
  void roll_back() override;

 private:
  // A point of the open transaction, and how to get to points before it.
  struct Step {
    std::int64_t end;  // Offset.
    HeldState state;
    Replay replay;
  };

  struct Transaction {
    std::int64_t start = 0;
    HeldState state;
    std::vector<Step> steps;
  };

  RecurrentState empty_;
  HeldState state_;
  std::int64_t offset_ = 0;
  std::optional<Transaction> open_;
};

}  // namespace saker::cache

// SPDX-License-Identifier: Apache-2.0
#pragma once

// States of a RecurrentCache at some positions of [first, last]. A sequence can start again at
// these positions only.

#include "saker/cache/recurrent.h"
#include "saker/cache/snapshot.h"

#include <cstdint>
#include <map>
#include <utility>

namespace saker::cache {

class RecurrentSnapshot final : public LayerSnapshot {
 public:
  using States = std::map<std::int64_t, HeldState>;  // By position.

  // REQUIRES: positions in (first, last].
  RecurrentSnapshot(States states, std::int64_t first, std::int64_t last)
      : LayerSnapshot(first, last), states_(std::move(states)) {}

  // The state at the last position <= target; null: none.
  const States::value_type* find(std::int64_t target) const;

  LayerSnapshotPtr slice(std::int64_t from, std::int64_t to) const override;
  LayerSnapshotPtr joined(const LayerSnapshot& next) const override;
  // A block is one array of a state. Its index: position * (arrays per state) + array.
  void for_each_block(const kernels::BlockVisitor& visit) const override;

 private:
  States states_;
};

}  // namespace saker::cache

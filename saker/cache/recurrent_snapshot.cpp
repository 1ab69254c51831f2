// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/recurrent_snapshot.h"

#include <cstddef>
#include <iterator>
#include <memory>
#include <utility>

namespace saker::cache {

const RecurrentSnapshot::States::value_type* RecurrentSnapshot::find(std::int64_t target) const {
  const auto after = states_.upper_bound(target);
  return after == states_.begin() ? nullptr : &*std::prev(after);
}

LayerSnapshotPtr RecurrentSnapshot::slice(std::int64_t from, std::int64_t to) const {
  return std::make_shared<RecurrentSnapshot>(
      States(states_.upper_bound(from), states_.upper_bound(to)), from, to
  );
}

LayerSnapshotPtr RecurrentSnapshot::joined(const LayerSnapshot& next) const {
  const auto& other = dynamic_cast<const RecurrentSnapshot&>(next);
  States states = states_;
  states.insert(other.states_.begin(), other.states_.end());
  return std::make_shared<RecurrentSnapshot>(std::move(states), first(), next.last());
}

void RecurrentSnapshot::for_each_block(const kernels::BlockVisitor& visit) const {
  for (const auto& [position, entry] : states_) {
    const RecurrentState& state = entry.arrays;
    for (std::size_t i = 0; i < state.size(); ++i) {
      if (state[i].size() > 0) {
        visit({
            .index =
                position * static_cast<std::int64_t>(state.size()) + static_cast<std::int64_t>(i),
            .data = state[i].data<std::byte>(),
            .bytes = state[i].nbytes(),
        });
      }
    }
  }
}

}  // namespace saker::cache

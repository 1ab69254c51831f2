// SPDX-License-Identifier: Apache-2.0
#pragma once

// Token sequences cut where they diverge, so that common parts are computed once. A segment is the
// tokens [begin, end) that all its sequences share; its children continue it. Plain C++.

#include <cstdint>
#include <span>
#include <vector>

namespace saker::score {

struct PrefixSegment {
  int parent = -1;  // An earlier segment; -1: none, and begin is 0.
  int begin = 0;
  int end = 0;
  // Sequences through it: order[first_sequence .. last_sequence). Some may end with it.
  int first_sequence = 0;
  int last_sequence = 0;
};

struct PrefixForest {
  std::vector<int> order;  // All sequences, equal ones side by side.
  std::vector<PrefixSegment> segments;
};

using TokenSpan = std::span<const std::int32_t>;

// Cuts off common tokens as a segment if that saves at least `min_saved` tokens, since later
// segments have to wait for it. Equal sequences always share. Every sequence ends at the end of
// exactly one of its segments. REQUIRES: no sequence is empty, min_saved >= 1.
PrefixForest make_prefix_forest(std::span<const TokenSpan> sequences, int min_saved);

}  // namespace saker::score

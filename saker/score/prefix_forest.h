// SPDX-License-Identifier: Apache-2.0
#pragma once

// Token sequences cut where they part, so that what several share is computed once. A segment holds
// the tokens [begin, end) that all its sequences have; its children continue it. Plain C++.

#include <cstdint>
#include <span>
#include <vector>

namespace saker::score {

struct PrefixSegment {
  int parent = -1;  // An earlier segment; -1: none, and begin is 0.
  int begin = 0;
  int end = 0;
  // Sequences that go through it: order[first_sequence .. last_sequence). Some end with it.
  int first_sequence = 0;
  int last_sequence = 0;
};

struct PrefixForest {
  std::vector<int> order;  // All sequences, equal ones beside each other.
  std::vector<PrefixSegment> segments;
};

using TokenSpan = std::span<const std::int32_t>;

// Tokens are cut off as a segment of their own where that saves at least `min_saved` rows, since
// what follows has to wait for them. Equal sequences always share. Every sequence ends at the end
// of exactly one segment that it goes through. REQUIRES: no sequence is empty, min_saved >= 1.
PrefixForest make_prefix_forest(std::span<const TokenSpan> sequences, int min_saved);

}  // namespace saker::score

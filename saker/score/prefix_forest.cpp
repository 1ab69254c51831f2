// SPDX-License-Identifier: Apache-2.0
// In sorted order, sequences with a common prefix are neighbours, and the common prefix of a range
// is that of its first and last sequence. A range is split by its next token. The common prefix of
// a part becomes a segment if enough of its sequences continue from there.
#include "saker/score/prefix_forest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace saker::score {
namespace {

class Builder {
 public:
  Builder(std::span<const TokenSpan> sequences, int min_saved)
      : sequences_(sequences), min_saved_(min_saved) {
    forest_.order.resize(sequences.size());
    std::iota(forest_.order.begin(), forest_.order.end(), 0);
    std::ranges::stable_sort(forest_.order, [&](int a, int b) {
      return std::ranges::lexicographical_compare(sequence(a), sequence(b));
    });
    int different = -1;
    for (int i = 0; i < size(); ++i) {
      different += i == 0 || !std::ranges::equal(at(i - 1), at(i)) ? 1 : 0;
      number_.push_back(different);
    }
  }

  PrefixForest build() {
    if (size() > 0) {
      ranges_.push_back({.first = 0, .last = size()});
    }
    while (!ranges_.empty()) {
      const Range range = ranges_.back();
      ranges_.pop_back();
      split(range);
    }
    return std::move(forest_);
  }

 private:
  // Sequences order[first, last) that agree on `shared` tokens; `parent` covers the first `begin`.
  struct Range {
    int first = 0;
    int last = 0;
    int begin = 0;
    int shared = 0;
    int parent = -1;
  };

  int size() const { return static_cast<int>(sequences_.size()); }

  TokenSpan sequence(int index) const { return sequences_[static_cast<std::size_t>(index)]; }

  TokenSpan at(int place) const { return sequence(forest_.order[static_cast<std::size_t>(place)]); }

  int length(int place) const { return static_cast<int>(at(place).size()); }

  int number(int place) const { return number_[static_cast<std::size_t>(place)]; }

  std::int32_t token(int place, int index) const {
    return at(place)[static_cast<std::size_t>(index)];
  }

  int add_segment(const Range& range, int end) {
    forest_.segments.push_back({range.parent, range.begin, end, range.first, range.last});
    return static_cast<int>(forest_.segments.size()) - 1;
  }

  void split(Range range) {
    Range ended = range;
    while (range.first < range.last && length(range.first) == range.shared) {
      ++range.first;
    }
    ended.last = range.first;
    if (ended.first < ended.last && ended.begin < ended.shared) {
      add_segment(ended, ended.shared);
    }
    while (range.first < range.last) {
      Range part = range;
      part.last = part.first + 1;
      while (part.last < range.last &&
             token(part.last, range.shared) == token(part.first, range.shared)) {
        ++part.last;
      }
      grow(part);
      range.first = part.last;
    }
  }

  void grow(Range part) {
    const int others = number(part.last - 1) - number(part.first);
    if (others == 0) {
      add_segment(part, length(part.first));
      return;
    }
    const TokenSpan low = at(part.first);
    const TokenSpan high = at(part.last - 1);
    part.shared = static_cast<int>(std::ranges::mismatch(low, high).in1 - low.begin());
    if (std::int64_t{part.shared - part.begin} * others >= min_saved_) {
      part.parent = add_segment(part, part.shared);
      part.begin = part.shared;
    }
    ranges_.push_back(part);
  }

  std::span<const TokenSpan> sequences_;
  int min_saved_;
  PrefixForest forest_;
  std::vector<int> number_;  // Number of different sequences up to each place.
  std::vector<Range> ranges_;
};

}  // namespace

PrefixForest make_prefix_forest(std::span<const TokenSpan> sequences, int min_saved) {
  return Builder(sequences, min_saved).build();
}

}  // namespace saker::score

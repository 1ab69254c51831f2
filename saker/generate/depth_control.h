// SPDX-License-Identifier: Apache-2.0
#pragma once

// Chooses how many draft tokens a round checks: the number with the most expected tokens per
// second, from recent costs and acceptance rates. Zero if drafting does not pay off.
//
// Expected tokens: one per round, plus one for each draft token whose predecessors are all
// accepted. Cost: the pass by its number of tokens, and the drafter by its depth, both as measured
// recently. Now and then a round probes another depth, rarely enough that the lost time stays below
// a fixed share. A probe whose drafter first had to catch up tells nothing about its cost, so
// another one follows.
//
// Only numbers: no clock, no model. One object serves all sequences of a generator and keeps its
// state for the next ones. Threading: one thread.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace saker::generate {

// For each place of a proposal: how often its token was right if all before it were.
class AcceptanceRates {
 public:
  // Adds a proposal of `drafted` tokens, of which the first `accepted` were right.
  void observe(int drafted, int accepted);

  // The probability that the first `count` tokens are all right. A place with too few trials has
  // the rate of the place before.
  double survival(int count) const;

  // Number of leading places with enough trials.
  int frontier() const;

  // These rates with less certainty, as a start for a new sequence.
  AcceptanceRates softened() const;

 private:
  struct Place {
    double tried = 0.0;  // Decaying counts.
    double accepted = 0.0;
    double guessed = 0.0;  // Trials for which the rate of the place before stands in.
  };

  double rate(std::size_t place, double before) const;

  std::vector<Place> places_;
};

// A recent cost: the median of the last values, so other load on the machine has little effect.
class RecentCost {
 public:
  void observe(double seconds);

  // The median, the smaller of two middle values; 0 before the first.
  double seconds() const { return median_; }

  // Number of values in the median.
  int count() const { return count_; }

 private:
  static constexpr std::size_t kValues = 7;

  std::array<double, kValues> values_ = {};
  std::size_t next_ = 0;
  int count_ = 0;
  double median_ = 0.0;
};

// Seconds of a pass by its number of tokens, linear between measured points. More tokens never cost
// less: a point above a later one is outdated or disturbed, and counts as that one.
class PassCosts {
 public:
  // The first value of a new number of tokens is its expected cost. So it is tried twice before it
  // counts as more expensive than that.
  void observe(int rows, double seconds);

  // Seconds for 0 to `most_rows` tokens. Beyond the largest measured number the curve is half as
  // steep: an optimistic guess, so that more tokens are tried. Empty before the first measurement.
  std::vector<double> curve(int most_rows) const;

  int count(int rows) const;

 private:
  std::map<int, RecentCost> points_;
};

// How a proposal's cost grows.
enum class DraftCost : std::uint8_t {
  kByToken,
  kByBlock,  // Equal at any depth.
};

class DepthControl {
 public:
  DepthControl() = default;

  explicit DepthControl(DraftCost draft_cost) : draft_cost_(draft_cost) {}

  // A sequence that could have drafts in the coming round.
  struct Candidate {
    const AcceptanceRates* rates;
    int limit;  // Most draft tokens.
  };

  // Depths for the candidates, in a pass with `other_rows` tokens of answers besides the drafts.
  // `may_probe`: the round will be observed.
  std::vector<int> choose(std::span<const Candidate> candidates, int other_rows, bool may_probe);

  struct Round {
    int rows = 0;               // Tokens of the pass, drafts included.
    int tokens = 0;             // Tokens that the answers gained.
    int depth = 0;              // The largest depth of its proposals.
    double pass_seconds = 0.0;  // Including the choice of tokens.
    double draft_seconds = 0.0;
    bool steady = true;  // No drafter had to catch up.
  };

  // Adds a round without prompt tokens.
  void observe(const Round& round);

 private:
  struct Plan {
    std::vector<int> depths;
    double tokens_a_second = 0.0;
  };

  Plan best(std::span<const Candidate> candidates, int other_rows) const;
  void probe(std::span<const Candidate> candidates, std::vector<int>& depths);

  // Number of drafter steps in a proposal of this depth.
  int draft_steps(int depth) const {
    return draft_cost_ == DraftCost::kByBlock ? std::min(depth, 1) : depth;
  }

  DraftCost draft_cost_ = DraftCost::kByToken;
  PassCosts passes_;
  RecentCost draft_step_;       // Drafter's seconds per token of depth, or per block.
  double expected_rate_ = 0.0;  // Tokens per second of the plan that a probe replaced.
  double debt_ = 0.0;           // Seconds that must pass before the next probe.
  bool probing_ = false;
  bool probe_again_ = false;  // The drafter has caught up.
  int probes_ = 0;
};

}  // namespace saker::generate

// SPDX-License-Identifier: Apache-2.0
#pragma once

// How many draft tokens a round should check: as many as give the most expected tokens a second, by
// what rounds have cost and how many drafts were accepted so far. None, where drafting does not
// pay.
//
// Expected tokens: a round gives one token, and one more for each draft token whose predecessors
// are all accepted. Cost: the pass by its number of rows, and the drafter by its depth, both as
// measured lately. Now and then a round tries another depth, so seldom that the time lost by it
// stays below a fixed share. What a drafter had to catch up first says nothing about its cost: such
// a try is followed by another one, which does.
//
// Only numbers: no clock, no model. One object serves all sequences of a generator and stays for
// the next ones. Threading: one thread.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace saker::generate {

// How often the draft token at each place of a proposal was right when those before it were.
class AcceptanceRates {
 public:
  // Of a proposal of `drafted` tokens, the first `accepted` were right.
  void observe(int drafted, int accepted);

  // The chance that the first `count` tokens are all right. Places that were not tried enough are
  // taken to be as good as the place before.
  double survival(int count) const;

  // Places tried often enough, from the first on.
  int frontier() const;

  // The same rates, less sure of themselves: where a new sequence starts.
  AcceptanceRates softened() const;

 private:
  struct Place {
    double tried = 0.0;  // Decaying counts.
    double accepted = 0.0;
    double guessed = 0.0;  // Trials that the rate of the place before still counts for.
  };

  double rate(std::size_t place, double before) const;

  std::vector<Place> places_;
};

// What something costs lately: the median of the last values, so that what else the machine does
// counts little.
class RecentCost {
 public:
  void observe(double seconds);

  // Of the two in the middle the smaller; 0 before the first.
  double seconds() const { return median_; }

  // Values that it is the median of.
  int count() const { return count_; }

 private:
  static constexpr std::size_t kValues = 7;

  std::array<double, kValues> values_ = {};
  std::size_t next_ = 0;
  int count_ = 0;
  double median_ = 0.0;
};

// Seconds of a pass by its rows: measured points with straight lines between them. More rows never
// cost less: a point above a later one is old or was disturbed, and counts as that one.
class PassCosts {
 public:
  // A number of rows that is new starts as what it was expected to cost, so that it is tried twice
  // before it counts as dearer than that.
  void observe(int rows, double seconds);

  // Of 0 to `most_rows` rows. Beyond the largest measured number they rise half as much as up to
  // there, which is hoped for so that more are tried. Nothing before the first measurement.
  std::vector<double> curve(int most_rows) const;

  int count(int rows) const;

 private:
  std::map<int, RecentCost> points_;
};

// What a proposal costs.
enum class DraftCost : std::uint8_t {
  kByToken,
  kByBlock,  // The same at any depth.
};

class DepthControl {
 public:
  DepthControl() = default;

  explicit DepthControl(DraftCost draft_cost) : draft_cost_(draft_cost) {}

  // A sequence that could be drafted for in the coming round.
  struct Candidate {
    const AcceptanceRates* rates;
    int limit;  // Draft tokens at most.
  };

  // Depths for them, in a pass that has `other_rows` rows of answers besides those of the drafts.
  // `may_probe`: the round will be observed.
  std::vector<int> choose(std::span<const Candidate> candidates, int other_rows, bool may_probe);

  struct Round {
    int rows = 0;               // Of the pass, draft rows too.
    int tokens = 0;             // That the round gave.
    int depth = 0;              // The largest of its proposals.
    double pass_seconds = 0.0;  // With choosing tokens.
    double draft_seconds = 0.0;
    bool steady = true;  // The drafter had nothing to catch up.
  };

  // A round whose rows were all of answers.
  void observe(const Round& round);

 private:
  struct Plan {
    std::vector<int> depths;
    double tokens_a_second = 0.0;
  };

  Plan best(std::span<const Candidate> candidates, int other_rows) const;
  void probe(std::span<const Candidate> candidates, std::vector<int>& depths);

  // How often a proposal of this depth has the drafter's cost.
  int draft_steps(int depth) const {
    return draft_cost_ == DraftCost::kByBlock ? std::min(depth, 1) : depth;
  }

  DraftCost draft_cost_ = DraftCost::kByToken;
  PassCosts passes_;
  RecentCost draft_step_;       // Seconds of a drafter for one token of depth, or for a block.
  double expected_rate_ = 0.0;  // Tokens a second of the plan that a probe was tried instead of.
  double debt_ = 0.0;           // Seconds that must pass before the next probe.
  bool probing_ = false;
  bool probe_again_ = false;  // The drafter has caught up now.
  int probes_ = 0;
};

}  // namespace saker::generate

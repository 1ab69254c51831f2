// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/depth_control.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace saker::generate {

namespace {

constexpr double kMemory = 0.95;      // Of acceptance, per trial: about the last twenty.
constexpr double kTriedEnough = 2.0;  // Trials.
constexpr double kGuessWeight = 2.0;  // Trials that the place before counts for at first.
constexpr double kFirstGuess = 0.7;   // The rate of a drafter that nothing is known of.
constexpr double kSoftWeight = 4.0;   // Trials that older sequences count for.
constexpr double kNewest = 0.2;       // Share of the newest value in a moving cost.
constexpr double kOutlier = 1.5;      // A cost counts as so many times its average at most.
constexpr int kFirstCosts = 3;        // Plain rounds that are measured before anything is drafted.
constexpr double kProbeShare = 0.01;  // Of the time, lost by trying other depths.
constexpr double kLeastLoss = 0.2;    // Of a probe's seconds: one in twenty rounds at most.
constexpr double kWorthDrafting = 1.03;  // Times the rate without drafts.

}  // namespace

void AcceptanceRates::observe(int drafted, int accepted) {
  // The place after the accepted ones was tried too, and was wrong.
  const auto tried = static_cast<std::size_t>(std::min(drafted, accepted + 1));
  if (places_.size() < tried) {
    places_.resize(tried, {.guessed = kGuessWeight});
  }
  for (std::size_t i = 0; i < tried; ++i) {
    Place& place = places_[i];
    place.tried = place.tried * kMemory + 1.0;
    place.guessed *= kMemory;
    place.accepted =
        place.accepted * kMemory + (i < static_cast<std::size_t>(accepted) ? 1.0 : 0.0);
  }
}

double AcceptanceRates::rate(std::size_t place, double before) const {
  if (place >= places_.size()) {
    return before;
  }
  const Place& known = places_[place];
  return (known.accepted + known.guessed * before) / (known.tried + known.guessed);
}

double AcceptanceRates::survival(int count) const {
  double chance = 1.0;
  double one = kFirstGuess;
  for (int i = 0; i < count; ++i) {
    one = rate(static_cast<std::size_t>(i), one);
    chance *= one;
  }
  return chance;
}

int AcceptanceRates::frontier() const {
  const auto untried =
      std::ranges::find_if(places_, [](const Place& place) { return place.tried < kTriedEnough; });
  return static_cast<int>(untried - places_.begin());
}

AcceptanceRates AcceptanceRates::softened() const {
  AcceptanceRates result = *this;
  for (Place& place : result.places_) {
    const double scale = std::min(1.0, kSoftWeight / std::max(place.tried, kSoftWeight));
    place.tried *= scale;
    place.accepted *= scale;
    place.guessed *= scale;
  }
  return result;
}

void MovingCost::observe(double seconds) {
  ++count_;
  const double newest = std::max(kNewest, 1.0 / count_);
  if (count_ > kFirstCosts) {
    seconds = std::min(seconds, seconds_ * kOutlier);
  }
  seconds_ += newest * (seconds - seconds_);
}

int PassCosts::count(int rows) const {
  const auto found = points_.find(rows);
  return found == points_.end() ? 0 : found->second.count();
}

std::optional<double> PassCosts::seconds(int rows) const {
  if (points_.empty()) {
    return std::nullopt;
  }
  auto above = points_.lower_bound(rows);
  if (above != points_.end() && above->first == rows) {
    return above->second.seconds();
  }
  if (above == points_.begin() || points_.size() == 1) {
    return points_.begin()->second.seconds();
  }
  if (above == points_.end()) {
    --above;
  }
  const auto below = std::prev(above);
  const double slope =
      (above->second.seconds() - below->second.seconds()) / (above->first - below->first);
  // More rows never cost less.
  return below->second.seconds() + std::max(slope, 0.0) * (rows - below->first);
}

double DepthControl::round_seconds(int rows, int depth) const {
  return passes_.seconds(rows).value_or(1.0) + draft_step_.seconds() * draft_steps(depth);
}

// The most promising draft tokens first, since a round of so many rows is then worth most: the
// chance of a token falls along its proposal, so each proposal is taken from its beginning.
DepthControl::Plan DepthControl::best(std::span<const Candidate> candidates, int other_rows) const {
  struct Row {
    double chance;
    std::size_t sequence;
    int depth;
  };

  std::vector<Row> rows;
  for (std::size_t s = 0; s < candidates.size(); ++s) {
    const Candidate& candidate = candidates[s];
    const int limit = std::min(candidate.limit, 2 * candidate.rates->frontier() + 2);
    for (int depth = 1; depth <= limit; ++depth) {
      rows.push_back({candidate.rates->survival(depth), s, depth});
    }
  }
  std::ranges::stable_sort(rows, [](const Row& a, const Row& b) { return a.chance > b.chance; });
  double tokens = other_rows;
  const double plain_seconds = round_seconds(other_rows, 0);
  Plan plan{std::vector<int>(candidates.size(), 0), tokens / plain_seconds};
  // What is measured is noisy: drafts have to be worth more than that, and rows cost no less.
  double to_beat = plan.tokens_a_second * kWorthDrafting;
  std::vector<int> depths = plan.depths;
  int count = other_rows;
  int deepest = 0;
  for (const Row& row : rows) {
    tokens += row.chance;
    depths[row.sequence] = row.depth;
    deepest = std::max(deepest, row.depth);
    const double rate = tokens / std::max(round_seconds(++count, deepest), plain_seconds);
    if (rate > to_beat) {
      plan = {depths, rate};
      to_beat = rate;
    }
  }
  return plan;
}

std::vector<int> DepthControl::choose(
    std::span<const Candidate> candidates, int other_rows, bool may_probe
) {
  probing_ = false;
  if (passes_.count(other_rows) < kFirstCosts) {
    return std::vector<int>(candidates.size(), 0);
  }
  Plan plan = best(candidates, other_rows);
  expected_rate_ = plan.tokens_a_second;
  if (may_probe && debt_ <= 0.0) {
    probe(candidates, plan.depths);
  }
  return plan.depths;
}

void DepthControl::probe(std::span<const Candidate> candidates, std::vector<int>& depths) {
  const int deepest = depths.empty() ? 0 : std::ranges::max(depths);
  // Around a depth that pays: one more, one less, none.
  const int step = deepest == 0 ? 0 : probes_ % 3;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    int& depth = depths[i];
    const int before = depth;
    depth = step == 0 ? depth + 1 : step == 1 ? std::max(depth - 1, 0) : 0;
    depth = std::min(depth, candidates[i].limit);
    probing_ = probing_ || depth != before;
    if (deepest == 0 && probing_) {
      break;  // One sequence is enough to learn from.
    }
  }
  probes_ += probing_ ? 1 : 0;
}

void DepthControl::observe(const Round& round) {
  passes_.observe(round.rows, round.pass_seconds);
  if (round.depth > 0 && round.steady) {
    draft_step_.observe(round.draft_seconds / draft_steps(round.depth));
  }
  const double seconds = round.pass_seconds + round.draft_seconds;
  debt_ = std::max(debt_ - seconds, 0.0);
  if (probing_ && expected_rate_ > 0.0) {
    const double lost = seconds - round.tokens / expected_rate_;
    debt_ += std::max(lost, kLeastLoss * seconds) / kProbeShare;
  }
  probing_ = false;
}

}  // namespace saker::generate

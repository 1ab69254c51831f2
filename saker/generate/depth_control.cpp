// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/depth_control.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace saker::generate {

namespace {

constexpr double kMemory = 0.95;      // Decay of acceptance per trial: about the last twenty count.
constexpr double kTriedEnough = 2.0;  // Trials.
constexpr double kGuessWeight = 2.0;  // Initial trials for which the place before stands in.
constexpr double kFirstGuess = 0.7;   // Acceptance rate of an unknown drafter.
constexpr double kSoftWeight = 4.0;   // Weight of older sequences, in trials.
constexpr int kFirstCosts = 3;        // Plain rounds that are measured before the first draft.
constexpr double kHopedRise = 0.5;    // Slope beyond the measured points over their mean slope.
constexpr double kProbeShare = 0.01;  // Part of the time that probes may lose.
constexpr double kLeastLoss = 0.2;    // Least loss, as a part of a probe's time.
constexpr double kWorthDrafting = 1.03;  // Least gain over the rate without drafts.

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

void RecentCost::observe(double seconds) {
  values_[next_] = seconds;
  next_ = (next_ + 1) % kValues;
  count_ = std::min(count_ + 1, static_cast<int>(kValues));
  std::array<double, kValues> sorted = values_;
  const auto middle = sorted.begin() + (count_ - 1) / 2;
  std::nth_element(sorted.begin(), middle, sorted.begin() + count_);
  median_ = *middle;
}

void PassCosts::observe(int rows, double seconds) {
  const bool is_new = !points_.contains(rows);
  const std::vector<double> expected = is_new ? curve(rows) : std::vector<double>();
  RecentCost& point = points_[rows];
  if (!expected.empty()) {
    point.observe(expected.back());
  }
  point.observe(seconds);
}

int PassCosts::count(int rows) const {
  const auto found = points_.find(rows);
  return found == points_.end() ? 0 : found->second.count();
}

std::vector<double> PassCosts::curve(int most_rows) const {
  if (points_.empty()) {
    return {};
  }

  struct Point {
    int rows;
    double seconds;
  };

  std::vector<Point> ahead;  // In reverse: the next one is last.
  for (const auto& [rows, cost] : points_ | std::views::reverse) {
    const double seconds = cost.seconds();
    ahead.push_back({rows, ahead.empty() ? seconds : std::min(seconds, ahead.back().seconds)});
  }
  const auto slope = [](const Point& from, const Point& to) {
    return (to.seconds - from.seconds) / std::max(to.rows - from.rows, 1);
  };
  const double beyond = kHopedRise * slope(ahead.back(), ahead.front());
  std::vector<double> result;
  for (int rows = 0; rows <= most_rows; ++rows) {
    while (ahead.size() > 1 && ahead[ahead.size() - 2].rows <= rows) {
      ahead.pop_back();
    }
    const Point& from = ahead.back();
    const double rise = ahead.size() > 1 ? slope(from, ahead[ahead.size() - 2]) : beyond;
    result.push_back(from.seconds + rise * std::max(rows - from.rows, 0));
  }
  return result;
}

// Adds draft tokens by descending probability, which makes a round of any size worth most. A
// token's probability falls along its proposal, so each proposal is taken from its beginning.
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
  const std::vector<double> passes =
      passes_.curve(other_rows + static_cast<int>(rows.size()));  // Not empty, see `choose`.
  double tokens = other_rows;
  const double plain_seconds = passes[static_cast<std::size_t>(other_rows)];
  Plan plan{std::vector<int>(candidates.size(), 0), tokens / plain_seconds};
  // Measurements are noisy: drafts must gain more than that.
  double to_beat = plan.tokens_a_second * kWorthDrafting;
  std::vector<int> depths = plan.depths;
  auto count = static_cast<std::size_t>(other_rows);
  int deepest = 0;
  for (const Row& row : rows) {
    tokens += row.chance;
    depths[row.sequence] = row.depth;
    deepest = std::max(deepest, row.depth);
    const double rate = tokens / (passes[++count] + draft_step_.seconds() * draft_steps(deepest));
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
  const bool again = std::exchange(probe_again_, false);
  if (passes_.count(other_rows) < kFirstCosts) {
    return std::vector<int>(candidates.size(), 0);
  }
  Plan plan = best(candidates, other_rows);
  expected_rate_ = plan.tokens_a_second;
  if (may_probe && (debt_ <= 0.0 || again)) {
    probe(candidates, plan.depths);
  }
  return plan.depths;
}

void DepthControl::probe(std::span<const Candidate> candidates, std::vector<int>& depths) {
  const int deepest = depths.empty() ? 0 : std::ranges::max(depths);
  // Around a depth that pays off: one more, one less, none.
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
    probe_again_ = round.depth > 0 && !round.steady;
  }
  probing_ = false;
}

}  // namespace saker::generate

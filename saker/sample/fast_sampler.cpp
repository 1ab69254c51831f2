// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/fast_sampler.h"

#include "saker/sample/nucleus.h"
#include "saker/sample/scan_loops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

namespace saker::sample {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLog2E = 1.4426950408889634;
// Bound of -log p for the best token: log(size), with sizes below 2^31.
constexpr double kLogSize = 22.0;
// Rounding to float32, with a margin for the other arithmetic, which is float64.
constexpr double kRounding = 0x1.1p-24;
// For larger logits the rounding of log_sum exceeds these bounds.
constexpr float kLargestLogit = 0x1p20F;
// Relative error of a sum of probabilities, exact or rough.
constexpr double kMassError = 1e-4;
constexpr int kRaces = 4;

// The remaining tokens after a filter: logits of at least `lower`; with exactly `lower`, ids up to
// `last`.
struct Bound {
  float lower = 0.0F;
  std::int32_t last = std::numeric_limits<std::int32_t>::max();
};

Bound above(float logit) {
  return {.lower = std::nextafter(logit, std::numeric_limits<float>::infinity())};
}

enum class Verdict : std::uint8_t { kIn, kOut, kUnsure };

struct Judgement {
  Verdict verdict = Verdict::kIn;
  Bound rest = {};  // If kOut: contains all survivors.
};

Judgement both(const Judgement& a, const Judgement& b) {
  return a.verdict == Verdict::kOut || b.verdict == Verdict::kIn ? a : b;
}

float float_below(double value) {
  if (!(value > static_cast<double>(kLowest))) {
    return kLowest;
  }
  const auto rounded = static_cast<float>(value);
  return static_cast<double>(rounded) > value ? std::nextafter(rounded, kLowest) : rounded;
}

struct Winner {
  std::int32_t id = -1;
  float logit = 0.0F;
  double score = -kInfinity;  // Known to within `uncertain`.
  double uncertain = 0.0;
  double second = -kInfinity;  // Upper bound of all other scores.
};

// Number of tokens before a given one.
struct Place {
  std::int64_t larger = 0;  // Certainly larger.
  std::int64_t equal = 0;   // Equal logit, lower id.
  std::int64_t near = 0;    // Before or after it, depending on rounding.
};

class FastSampler {
 public:
  FastSampler(const SamplingOptions& options, const BlockedRow& row, const Noise& noise)
      : options_(options),
        row_(row),
        noise_(noise),
        max_(row.max()),
        inverse_temperature_(1.0 / options.temperature) {}

  std::optional<std::int32_t> run() const {
    Bound bound = {.lower = lower_bound()};
    for (int i = 0; i < kRaces; ++i) {
      const Winner winner = race(bound);
      if (winner.id < 0 || winner.second >= winner.score - winner.uncertain) {
        return std::nullopt;
      }
      const Judgement judgement = judge(winner);
      if (judgement.verdict == Verdict::kIn) {
        return winner.id;
      }
      if (judgement.verdict == Verdict::kUnsure) {
        return std::nullopt;
      }
      bound = judgement.rest;
    }
    return std::nullopt;
  }

 private:
  double below_max(float logit) const { return max_ - static_cast<double>(logit); }

  // Error of the log-probability of a token this far below the best.
  static double error(double below) { return (below + kLogSize) * kRounding; }

  bool top_p_on() const { return options_.top_p > 0.0 && options_.top_p < 1.0; }

  double log_min_p() const { return std::log(std::max(options_.min_p, 1e-300)); }

  // Error of comparing with min_p's threshold, a sum of two rounded numbers.
  double min_p_error(double below) const { return 2.0 * error(below - log_min_p() + kLogSize); }

  // Rounding may give tokens between lowest_near and highest_near equal log-probabilities.
  float lowest_near(const Winner& token) const {
    return float_below(static_cast<double>(token.logit) - 2.0 * error(below_max(token.logit)));
  }

  float highest_near(const Winner& token) const {
    return -float_below(-static_cast<double>(token.logit) - 2.0 * error(below_max(token.logit)));
  }

  float lower_bound() const;
  Winner race(const Bound& bound) const;
  void enter(Winner& best, double& line, std::int32_t id) const;
  Place place_of(const Winner& token) const;
  Bound best_of(float logit, std::int64_t count) const;
  Judgement in_nucleus(const Winner& token) const;
  Judgement above_min_p(const Winner& token) const;
  Judgement among_best(const Winner& token, std::int64_t count) const;
  Judgement judge(const Winner& token) const;

  const SamplingOptions& options_;
  const BlockedRow& row_;
  const Noise& noise_;
  double max_;
  double inverse_temperature_;
};

// A logit such that no survivor is below it.
float FastSampler::lower_bound() const {
  double bound = -kInfinity;
  if (options_.min_p > 0.0 && options_.min_tokens_to_keep == 1) {
    bound = max_ + log_min_p() - min_p_error(-log_min_p());
  }
  const double rest = 1.0 - options_.top_p;
  if (top_p_on() && rest > 20.0 * kMassError) {
    // All tokens below have together less than half of the mass outside the nucleus.
    bound =
        std::max(bound, max_ + std::log(0.5 * rest / static_cast<double>(row_.logits().size())));
  }
  const auto count = static_cast<std::size_t>(std::max(options_.top_k, 0));
  if (count > 0 && count <= row_.maxima().size()) {
    // `count` blocks have a token of at least this value.
    std::vector<float> maxima(row_.maxima().begin(), row_.maxima().end());
    const auto last = maxima.begin() + static_cast<std::ptrdiff_t>(count) - 1;
    std::nth_element(maxima.begin(), last, maxima.end(), std::greater<>());
    const auto worst = static_cast<double>(*last);
    bound = std::max(bound, worst - 2.0 * error(max_ - worst));
  }
  return float_below(bound);
}

void FastSampler::enter(Winner& best, double& line, std::int32_t id) const {
  const float logit = row_.logits()[static_cast<std::size_t>(id)];
  const double below = below_max(logit);
  const double score = -below * inverse_temperature_;
  const double uncertain = error(below) * inverse_temperature_;
  const std::uint64_t bits = noise_.bits(id);
  if (score + uncertain + Noise::gumbel_bound(bits) < line) {
    return;
  }
  const double noisy = score + Noise::to_gumbel(bits);
  if (noisy <= best.score) {
    best.second = std::max(best.second, noisy + uncertain);
    return;
  }
  best = {id, logit, noisy, uncertain, std::max(best.second, best.score + best.uncertain)};
  line = std::max(line, noisy - uncertain);
}

Winner FastSampler::race(const Bound& bound) const {
  const ScanLoops& loops = scan_loops();
  // The best token's score is 0, and noise is above -3.7.
  double line = -4.0 - error(0.0) * inverse_temperature_;
  Winner best;
  best.second = line;
  Contest contest;
  contest.lower = bound.lower;
  contest.max = row_.max();
  // Flatter and higher than the exact line, by more than float32 rounding.
  contest.slope = static_cast<float>(inverse_temperature_ * kLog2E * (1.0 - 0x1p-18));
  std::array<std::uint8_t, kScanBlock> places;
  for (std::size_t i = 0; i < row_.maxima().size(); ++i) {
    if (row_.maxima()[i] < bound.lower) {
      continue;
    }
    const double offset = error(0.0) * inverse_temperature_ - line;
    contest.offset = static_cast<float>(offset * kLog2E * (1.0 + 0x1p-20) + 0x1p-9);
    const std::span<const float> block = row_.block(i);
    const auto first = static_cast<std::int32_t>(i * kScanBlock);
    const std::size_t count =
        loops.contenders(contest, block.data(), block.size(), noise_.state(first), places.data());
    for (std::size_t j = 0; j < count; ++j) {
      const std::int32_t id = first + places[j];
      if (id <= bound.last || block[places[j]] > bound.lower) {
        enter(best, line, id);
      }
    }
  }
  return best;
}

Place FastSampler::place_of(const Winner& token) const {
  const float low = lowest_near(token);
  const float high = highest_near(token);
  Place place;
  for (std::size_t i = 0; i < row_.maxima().size(); ++i) {
    if (row_.maxima()[i] < low) {
      continue;
    }
    const std::span<const float> block = row_.block(i);
    for (const float x : block) {
      place.larger += x > high ? 1 : 0;
      place.near += x >= low && x <= high && x != token.logit ? 1 : 0;
    }
    const auto before = std::clamp<std::int64_t>(
        token.id - static_cast<std::int64_t>(i * kScanBlock), 0, std::ssize(block)
    );
    place.equal += std::count(block.begin(), block.begin() + before, token.logit);
  }
  return place;
}

// The tokens above a logit, and the first `count` equal to it.
Bound FastSampler::best_of(float logit, std::int64_t count) const {
  for (std::size_t i = 0; i < row_.maxima().size() && count > 0; ++i) {
    if (row_.maxima()[i] < logit) {
      continue;
    }
    const std::span<const float> block = row_.block(i);
    for (std::size_t j = 0; j < block.size(); ++j) {
      if (block[j] == logit && --count == 0) {
        return {logit, static_cast<std::int32_t>(i * kScanBlock + j)};
      }
    }
  }
  return above(logit);
}

Judgement FastSampler::among_best(const Winner& token, std::int64_t count) const {
  const Place place = place_of(token);
  const std::int64_t least = place.larger + place.equal;
  if (least + place.near < count) {
    return {};
  }
  if (least < count || place.near > 0) {
    return {Verdict::kUnsure};
  }
  return {Verdict::kOut, best_of(token.logit, count - place.larger)};
}

Judgement FastSampler::above_min_p(const Winner& token) const {
  const double below = below_max(token.logit);
  const double room = -log_min_p() - below;
  const double unsure = min_p_error(below);
  if (below == 0.0 || room > unsure) {
    return {};
  }
  const Judgement judgement =
      room < -unsure ? Judgement{Verdict::kOut, above(token.logit)} : Judgement{Verdict::kUnsure};
  if (options_.min_tokens_to_keep == 1) {
    return judgement;
  }
  const Judgement kept = among_best(token, options_.min_tokens_to_keep);
  return judgement.verdict == Verdict::kUnsure && kept.verdict == Verdict::kOut ? judgement : kept;
}

Judgement FastSampler::in_nucleus(const Winner& token) const {
  if (token.logit == row_.max()) {
    return {};
  }
  // `well_above` counts only tokens that rounding cannot make equal.
  const RoughMass mass = scan_loops().mass(
      row_.logits().data(), row_.logits().size(), row_.max(), token.logit, highest_near(token)
  );
  const double target = options_.top_p * mass.all;
  if (mass.above * (1.0 + kMassError) < target) {
    return {};
  }
  if (mass.well_above * (1.0 - kMassError) < target) {
    return {Verdict::kUnsure};
  }
  return {Verdict::kOut, above(token.logit)};
}

Judgement FastSampler::judge(const Winner& token) const {
  Judgement judgement;
  if (options_.top_k > 0) {
    judgement = among_best(token, options_.top_k);
  }
  if (judgement.verdict != Verdict::kOut && options_.min_p > 0.0) {
    judgement = both(judgement, above_min_p(token));
  }
  if (judgement.verdict != Verdict::kOut && top_p_on()) {
    judgement = both(judgement, in_nucleus(token));
  }
  return judgement;
}

}  // namespace

BlockedRow::BlockedRow(std::span<const float> logits)
    : logits_(logits),
      maxima_((logits.size() + kScanBlock - 1) / kScanBlock),
      max_(-std::numeric_limits<float>::infinity()) {
  scan_loops().block_maxima(logits.data(), logits.size(), maxima_.data());
  for (const float x : maxima_) {
    max_ = std::max(max_, x);
  }
}

std::span<const float> BlockedRow::block(std::size_t index) const {
  const std::size_t first = index * kScanBlock;
  return logits_.subspan(first, std::min(kScanBlock, logits_.size() - first));
}

std::optional<std::int32_t> choose_quickly(
    const SamplingOptions& options, const BlockedRow& row, const Noise& noise
) {
  if (std::abs(row.max()) > kLargestLogit) {
    return std::nullopt;
  }
  return FastSampler(options, row, noise).run();
}

}  // namespace saker::sample

// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/quick_choice.h"

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
// log p(x) of the best token is at least -log(size): sizes are below 2^31.
constexpr double kLogSize = 22.0;
// Rounding to float32, and the rest of the arithmetic, which is float64.
constexpr double kRounding = 0x1.1p-24;
// Beyond, the rounding of log_sum is no longer small beside that.
constexpr float kLargestLogit = 0x1p20F;
// Of a sum of probabilities, exact or rough, as a share.
constexpr double kMassError = 1e-4;
constexpr int kRaces = 4;

enum class Verdict : std::uint8_t { kIn, kOut, kUnsure };

Verdict both(Verdict a, Verdict b) {
  if (a == Verdict::kOut || b == Verdict::kOut) {
    return Verdict::kOut;
  }
  return a == Verdict::kIn ? b : a;
}

float float_below(double value) {
  constexpr float kLowest = std::numeric_limits<float>::lowest();
  if (!(value > static_cast<double>(kLowest))) {
    return kLowest;
  }
  const auto rounded = static_cast<float>(value);
  return static_cast<double>(rounded) > value ? std::nextafter(rounded, kLowest) : rounded;
}

struct Winner {
  std::int32_t id = -1;
  float logit = 0.0F;
  double score = -kInfinity;  // At most this wrong:
  double uncertain = 0.0;
  double second = -kInfinity;  // No other's score is above.
};

// How many tokens come before one.
struct Place {
  std::int64_t least = 0;
  std::int64_t most = 0;
  bool alone = true;  // No token could be its equal and come before it.
};

class QuickChoice {
 public:
  QuickChoice(const SamplingOptions& options, const BlockedRow& row, const Noise& noise)
      : options_(options),
        row_(row),
        noise_(noise),
        max_(row.max()),
        inverse_temperature_(1.0 / options.temperature) {}

  std::optional<std::int32_t> run() const {
    float lower = lower_bound();
    for (int i = 0; i < kRaces; ++i) {
      const Winner winner = race(lower);
      if (winner.id < 0 || winner.second >= winner.score - winner.uncertain) {
        return std::nullopt;
      }
      switch (survives(winner)) {
        case Verdict::kIn:
          return winner.id;
        case Verdict::kOut:
          lower = std::nextafter(winner.logit, std::numeric_limits<float>::infinity());
          break;
        default:
          return std::nullopt;
      }
    }
    return std::nullopt;
  }

 private:
  double below_max(float logit) const { return max_ - static_cast<double>(logit); }

  // Of the log-probability of a token so far below the best.
  static double error(double below) { return (below + kLogSize) * kRounding; }

  bool top_p_on() const { return options_.top_p > 0.0 && options_.top_p < 1.0; }

  double log_min_p() const { return std::log(std::max(options_.min_p, 1e-300)); }

  // Of the comparison with min_p's threshold, a sum of two rounded numbers.
  double min_p_error(double below) const { return 2.0 * error(below - log_min_p() + kLogSize); }

  // Rounding may give tokens between these the same log-probability.
  float lowest_near(const Winner& token) const {
    return float_below(static_cast<double>(token.logit) - 2.0 * error(below_max(token.logit)));
  }

  float highest_near(const Winner& token) const {
    return -float_below(-static_cast<double>(token.logit) - 2.0 * error(below_max(token.logit)));
  }

  float lower_bound() const;
  Winner race(float lower) const;
  void enter(Winner& best, double& line, std::int32_t id) const;
  Place place_of(const Winner& token) const;
  Verdict in_nucleus(const Winner& token) const;
  Verdict above_min_p(const Winner& token) const;
  Verdict among_best(const Winner& token, std::int64_t count) const;

  Verdict survives(const Winner& token) const {
    Verdict verdict = Verdict::kIn;
    if (options_.top_k > 0) {
      verdict = among_best(token, options_.top_k);
    }
    if (verdict != Verdict::kOut && options_.min_p > 0.0) {
      verdict = both(verdict, above_min_p(token));
    }
    if (verdict != Verdict::kOut && top_p_on()) {
      verdict = both(verdict, in_nucleus(token));
    }
    return verdict;
  }

  const SamplingOptions& options_;
  const BlockedRow& row_;
  const Noise& noise_;
  double max_;
  double inverse_temperature_;
};

// No survivor is below.
float QuickChoice::lower_bound() const {
  double bound = -kInfinity;
  if (options_.min_p > 0.0 && options_.min_tokens_to_keep == 1) {
    bound = max_ + log_min_p() - min_p_error(-log_min_p());
  }
  const double rest = 1.0 - options_.top_p;
  if (top_p_on() && rest > 20.0 * kMassError) {
    // All tokens below together have less than half of what the nucleus leaves out.
    bound =
        std::max(bound, max_ + std::log(0.5 * rest / static_cast<double>(row_.logits().size())));
  }
  const auto count = static_cast<std::size_t>(std::max(options_.top_k, 0));
  if (count > 0 && count <= row_.maxima().size()) {
    // As many blocks hold a token of at least this.
    std::vector<float> maxima(row_.maxima().begin(), row_.maxima().end());
    const auto last = maxima.begin() + static_cast<std::ptrdiff_t>(count) - 1;
    std::nth_element(maxima.begin(), last, maxima.end(), std::greater<>());
    const auto worst = static_cast<double>(*last);
    bound = std::max(bound, worst - 2.0 * error(max_ - worst));
  }
  return float_below(bound);
}

void QuickChoice::enter(Winner& best, double& line, std::int32_t id) const {
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

Winner QuickChoice::race(float lower) const {
  const ScanLoops& loops = scan_loops();
  Winner best;
  // The best token's score is 0, and noise is above -3.7.
  double line = -4.0 - error(0.0) * inverse_temperature_;
  Contest contest;
  contest.lower = lower;
  contest.max = row_.max();
  // Flatter and higher than it is by more than the rounding of float32.
  contest.slope = static_cast<float>(inverse_temperature_ * kLog2E * (1.0 - 0x1p-18));
  std::array<std::uint8_t, kScanBlock> places;
  for (std::size_t i = 0; i < row_.maxima().size(); ++i) {
    if (row_.maxima()[i] < lower) {
      continue;
    }
    const double offset = error(0.0) * inverse_temperature_ - line;
    contest.offset = static_cast<float>(offset * kLog2E * (1.0 + 0x1p-20) + 0x1p-9);
    const std::span<const float> block = row_.block(i);
    const auto first = static_cast<std::int32_t>(i * kScanBlock);
    const std::size_t count =
        loops.contenders(contest, block.data(), block.size(), noise_.state(first), places.data());
    for (std::size_t j = 0; j < count; ++j) {
      enter(best, line, first + places[j]);
    }
  }
  return best;
}

Place QuickChoice::place_of(const Winner& token) const {
  const float low = lowest_near(token);
  const float high = highest_near(token);
  Place place;
  std::int64_t near_count = 0;
  for (std::size_t i = 0; i < row_.maxima().size(); ++i) {
    if (row_.maxima()[i] < low) {
      continue;
    }
    const std::span<const float> block = row_.block(i);
    std::int64_t above = 0;
    std::int64_t others = 0;
    for (const float x : block) {
      above += x > high ? 1 : 0;
      others += x >= low && x <= high && x != token.logit ? 1 : 0;
    }
    const auto before = std::clamp<std::int64_t>(
        token.id - static_cast<std::int64_t>(i * kScanBlock), 0, std::ssize(block)
    );
    const auto equal = std::count(block.begin(), block.begin() + before, token.logit);
    place.least += above + equal;
    near_count += others;
    place.alone = place.alone && others == 0 && equal == 0;
  }
  place.most = place.least + near_count;
  return place;
}

Verdict QuickChoice::among_best(const Winner& token, std::int64_t count) const {
  const Place place = place_of(token);
  if (place.most < count) {
    return Verdict::kIn;
  }
  return place.least >= count && place.alone ? Verdict::kOut : Verdict::kUnsure;
}

Verdict QuickChoice::above_min_p(const Winner& token) const {
  const double below = below_max(token.logit);
  const double room = -log_min_p() - below;
  const double unsure = min_p_error(below);
  if (below == 0.0 || room > unsure) {
    return Verdict::kIn;
  }
  const Verdict verdict = room < -unsure ? Verdict::kOut : Verdict::kUnsure;
  if (options_.min_tokens_to_keep == 1) {
    return verdict;
  }
  const Verdict kept = among_best(token, options_.min_tokens_to_keep);
  return kept == Verdict::kOut ? verdict : kept;
}

Verdict QuickChoice::in_nucleus(const Winner& token) const {
  if (token.logit == row_.max()) {
    return Verdict::kIn;
  }
  // Well above are those that rounding cannot make its equals.
  const RoughMass mass = scan_loops().mass(
      row_.logits().data(), row_.logits().size(), row_.max(), token.logit, highest_near(token)
  );
  const double target = options_.top_p * mass.all;
  if (mass.above * (1.0 + kMassError) < target) {
    return Verdict::kIn;
  }
  return mass.well_above * (1.0 - kMassError) >= target ? Verdict::kOut : Verdict::kUnsure;
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
  return QuickChoice(options, row, noise).run();
}

}  // namespace saker::sample

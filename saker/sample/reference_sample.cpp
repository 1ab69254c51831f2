// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/reference_sample.h"

#include "saker/base/log_prob.h"
#include "saker/base/portable_math.h"
#include "saker/sample/filters.h"
#include "saker/sample/typical.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace saker::sample {

namespace {

// Relative to the best token's 1: never drawn, and still a normal number after normalising.
constexpr double kLeastWeight = 1e-290;
constexpr double kNone = -std::numeric_limits<double>::infinity();

// The winner so far of a Gumbel-max race. Computes noise only where its bound could win.
struct Race {
  const Noise& noise;
  double inverse_temperature;
  double best_score = kNone;
  std::int32_t best = -1;

  void enter(float log_prob, std::int32_t id) {
    const std::uint64_t bits = noise.bits(id);
    const double score = static_cast<double>(log_prob) * inverse_temperature;
    if (score + Noise::gumbel_bound(bits) < best_score) {
      return;
    }
    const double noisy = score + Noise::to_gumbel(bits);
    // Ids ascend, so the lower one wins a tie.
    if (noisy > best_score) {
      best_score = noisy;
      best = id;
    }
  }
};

// logits -> log-probabilities in float32; NaN becomes -infinity.
void normalise(std::span<float> logits, double log_sum) {
  for (float& x : logits) {
    const auto log_prob = static_cast<float>(static_cast<double>(x) - log_sum);
    x = log_prob <= 0.5F ? log_prob : -std::numeric_limits<float>::infinity();
  }
}

// share^exponent for a share in [0, 1].
double power(double share, double exponent) {
  return share > 0.0 ? portable_exp(exponent * portable_log(share)) : (exponent > 0.0 ? 0.0 : 1.0);
}

// The temperature follows the survivors' entropy, which is 1 if all are equally probable: T = T_min
// + (T_max - T_min) * entropy^exponent, as in llama.cpp's dynatemp.
double temperature_of(const SamplingOptions& options, std::span<const Candidate> tokens) {
  if (options.dynatemp_range == 0.0 || tokens.size() < 2) {
    return options.temperature;
  }
  double mass = 0.0;
  double weighted = 0.0;
  for (const Candidate& token : tokens) {
    const double p = portable_exp(token.log_prob);
    mass += p;
    weighted += p * static_cast<double>(token.log_prob);
  }
  const double entropy = portable_log(mass) - weighted / mass;
  const double share =
      std::clamp(entropy / portable_log(static_cast<double>(tokens.size())), 0.0, 1.0);
  const double lowest = std::max(options.temperature - options.dynatemp_range, kColdest);
  const double highest = options.temperature + options.dynatemp_range;
  return lowest + (highest - lowest) * power(share, options.dynatemp_exponent);
}

// `log_probs` are the normalised logits; `max` is the largest of the logits before.
std::vector<Candidate> survivors(
    const SamplingOptions& options,
    std::span<float> log_probs,
    float max,
    double log_sum,
    bool xtc,
    std::span<const std::int32_t> xtc_exempt
) {
  auto best = static_cast<float>(static_cast<double>(max) - log_sum);
  if (row_filters_needed(options)) {
    best = filter_row(options, log_probs, best);
  }
  return filter(options, log_probs, best, xtc, xtc_exempt);
}

}  // namespace

bool only_exact(const SamplingOptions& options) {
  return row_filters_needed(options) || options.dynatemp_range > 0.0;
}

std::int32_t choose_exactly(
    const SamplingOptions& options,
    std::span<float> logits,
    float max,
    const Noise& noise,
    bool xtc,
    std::span<const std::int32_t> xtc_exempt
) {
  const double log_sum = log_sum_exp(logits);
  normalise(logits, log_sum);
  if (!only_exact(options) && !filters_needed(options)) {
    Race race{noise, 1.0 / options.temperature};
    for (std::size_t i = 0; i < logits.size(); ++i) {
      race.enter(logits[i], static_cast<std::int32_t>(i));
    }
    return race.best;
  }
  const std::vector<Candidate> tokens = survivors(options, logits, max, log_sum, xtc, xtc_exempt);
  Race race{noise, 1.0 / temperature_of(options, tokens)};
  for (const Candidate& token : tokens) {
    race.enter(token.log_prob, token.id);
  }
  return race.best;
}

Distribution exact_distribution(
    const SamplingOptions& options,
    std::span<float> logits,
    float max,
    bool xtc,
    std::span<const std::int32_t> xtc_exempt
) {
  const double log_sum = log_sum_exp(logits);
  normalise(logits, log_sum);
  const std::vector<Candidate> tokens = survivors(options, logits, max, log_sum, xtc, xtc_exempt);
  const double inverse_temperature = 1.0 / temperature_of(options, tokens);
  float best = tokens.front().log_prob;
  for (const Candidate& token : tokens) {
    best = std::max(best, token.log_prob);
  }
  Distribution distribution;
  double sum = 0.0;
  for (const Candidate& token : tokens) {
    const double below = static_cast<double>(token.log_prob) - static_cast<double>(best);
    if (const double weight = portable_exp(below * inverse_temperature); weight > kLeastWeight) {
      distribution.push_back({weight, token.id});
      sum += weight;
    }
  }
  for (Outcome& outcome : distribution) {
    outcome.probability /= sum;
  }
  return distribution;
}

}  // namespace saker::sample

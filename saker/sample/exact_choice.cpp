// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/exact_choice.h"

#include "saker/base/log_prob.h"
#include "saker/sample/filters.h"

#include <cstddef>
#include <limits>

namespace saker::sample {

namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

// The winner so far of a Gumbel-max race. Noise is computed only where its bound could win.
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
    // Ids ascend, so a tie stays with the lower one.
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

}  // namespace

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
  Race race{noise, 1.0 / options.temperature};
  if (!filters_needed(options)) {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      race.enter(logits[i], static_cast<std::int32_t>(i));
    }
    return race.best;
  }
  const auto best_log_prob = static_cast<float>(static_cast<double>(max) - log_sum);
  for (const Candidate& token : filter(options, logits, best_log_prob, xtc, xtc_exempt)) {
    race.enter(token.log_prob, token.id);
  }
  return race.best;
}

}  // namespace saker::sample

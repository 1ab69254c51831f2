// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/sampler.h"

#include "saker/base/error.h"
#include "saker/base/log_prob.h"
#include "saker/sample/filters.h"
#include "saker/sample/noise.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

namespace saker::sample {

namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();
// Below it, noise is smaller than the rounding of scores: greedy.
constexpr double kColdest = 1e-6;

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

Sampler::Sampler(
    SamplingOptions options,
    int vocab_size,
    std::vector<std::int32_t> xtc_exempt,
    std::uint32_t choice
)
    : options_(std::move(options)), xtc_exempt_(std::move(xtc_exempt)), choice_(choice) {
  check_options(options_, vocab_size);
  std::sort(xtc_exempt_.begin(), xtc_exempt_.end());
}

std::int32_t Sampler::choose(
    std::span<float> logits, std::span<const std::int32_t> context, std::int64_t position
) {
  if (Processors::needed(options_)) {
    processors_.apply(options_, context, logits);
  }
  const float max = max_logit(logits);
  require(
      max > -std::numeric_limits<float>::infinity(),
      ErrorCode::kInternal,
      "the model produced no finite logit at position {}",
      position
  );
  if (options_.temperature < kColdest || std::isinf(max)) {
    return best_token(logits);
  }
  const double log_sum = log_sum_exp(logits);
  normalise(logits, log_sum);
  const Noise noise(options_.seed, choice_, position, NoiseRole::kToken);
  Race race{noise, 1.0 / options_.temperature};
  if (!filters_needed(options_)) {
    for (std::size_t i = 0; i < logits.size(); ++i) {
      race.enter(logits[i], static_cast<std::int32_t>(i));
    }
    return race.best;
  }
  const Noise draw(options_.seed, choice_, position, NoiseRole::kXtc);
  const bool xtc =
      options_.xtc_probability > 0.0 && Noise::to_uniform(draw.bits(0)) <= options_.xtc_probability;
  const auto best_log_prob = static_cast<float>(static_cast<double>(max) - log_sum);
  for (const Candidate& token : filter(options_, logits, best_log_prob, xtc, xtc_exempt_)) {
    race.enter(token.log_prob, token.id);
  }
  return race.best;
}

}  // namespace saker::sample

// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/sampler.h"

#include "saker/base/error.h"
#include "saker/base/log_prob.h"
#include "saker/sample/exact_choice.h"
#include "saker/sample/noise.h"
#include "saker/sample/quick_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace saker::sample {

namespace {

// Below it, noise is smaller than the rounding of scores: greedy.
constexpr double kColdest = 1e-6;

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
  const bool greedy = options_.temperature < kColdest;
  const BlockedRow row(greedy ? std::span<const float>() : logits);
  const float max = greedy ? max_logit(logits) : row.max();
  require(
      max > -std::numeric_limits<float>::infinity(),
      ErrorCode::kInternal,
      "the model produced no finite logit at position {}",
      position
  );
  if (greedy || std::isinf(max)) {
    return best_token(logits);
  }
  const Noise noise(options_.seed, choice_, position, NoiseRole::kToken);
  const Noise draw(options_.seed, choice_, position, NoiseRole::kXtc);
  const bool xtc =
      options_.xtc_probability > 0.0 && Noise::to_uniform(draw.bits(0)) <= options_.xtc_probability;
  if (!xtc) {
    if (const auto token = choose_quickly(options_, row, noise)) {
      return *token;
    }
  }
  return choose_exactly(options_, logits, max, noise, xtc, xtc_exempt_);
}

}  // namespace saker::sample

// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/sampler.h"

#include "saker/base/error.h"
#include "saker/base/log_prob.h"
#include "saker/sample/fast_sampler.h"
#include "saker/sample/noise.h"
#include "saker/sample/reference_sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace saker::sample {

namespace {

void check_max(float max, std::int64_t position) {
  require(
      max > -std::numeric_limits<float>::infinity(),
      ErrorCode::kInternal,
      "the model produced no finite logit at position {}",
      position
  );
}

}  // namespace

Sampler::Sampler(SamplingOptions options, int vocab_size, NamedTokens tokens, std::uint32_t choice)
    : options_(std::move(options)), tokens_(std::move(tokens)), choice_(choice) {
  check_options(options_, vocab_size);
  std::ranges::sort(tokens_.xtc_exempt);
  std::ranges::sort(tokens_.dry_breakers);
}

bool Sampler::xtc_at(std::int64_t position) const {
  return options_.xtc_probability > 0.0 &&
         Noise::to_uniform(noise(position, NoiseRole::kXtc).bits(0)) <= options_.xtc_probability;
}

bool Sampler::is_certain(float max) const {
  return options_.temperature < kColdest || std::isinf(max);
}

void Sampler::process(std::span<float> logits, std::span<const std::int32_t> context) {
  if (Processors::needed(options_)) {
    processors_.apply(options_, tokens_, context, logits);
  }
}

std::int32_t Sampler::choose(
    std::span<float> logits, std::span<const std::int32_t> context, std::int64_t position
) {
  process(logits, context);
  if (options_.temperature < kColdest) {
    const std::int32_t best = best_token(logits);
    check_max(logits[static_cast<std::size_t>(best)], position);
    return best;
  }
  const BlockedRow row(logits);
  const float max = row.max();
  check_max(max, position);
  if (is_certain(max)) {
    return best_token(logits);
  }
  const Noise token_noise = noise(position, NoiseRole::kToken);
  const bool xtc = xtc_at(position);
  if (!xtc && !only_exact(options_)) {
    if (const auto token = choose_quickly(options_, row, token_noise)) {
      return *token;
    }
  }
  return choose_exactly(options_, logits, max, token_noise, xtc, tokens_.xtc_exempt);
}

Distribution Sampler::distribution(
    std::span<float> logits, std::span<const std::int32_t> context, std::int64_t position
) {
  process(logits, context);
  const float max = max_logit(logits);
  check_max(max, position);
  if (is_certain(max)) {
    return {{1.0, best_token(logits)}};
  }
  return exact_distribution(options_, logits, max, xtc_at(position), tokens_.xtc_exempt);
}

std::int32_t Sampler::accept_or_resample(
    const Distribution& chances,
    const Distribution& draft_chances,
    std::int32_t draft,
    std::int64_t position
) const {
  const double uniform = Noise::to_uniform(noise(position, NoiseRole::kAcceptance).bits(0));
  return sample::accept_or_resample(
      chances, draft_chances, draft, uniform, noise(position, NoiseRole::kResidual)
  );
}

}  // namespace saker::sample

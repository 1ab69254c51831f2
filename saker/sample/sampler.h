// SPDX-License-Identifier: Apache-2.0
#pragma once

// From one row of raw logits to a token: processors, float32 log-softmax (float64 log-sum-exp),
// filters, and Gumbel-max:
//
//   token = argmax over the survivors of log p(x) / temperature + g(seed, choice, position, x)
//
// where dynatemp may make the temperature one of the survivors' entropy, with ties to the lower id;
// temperature 0 is the argmax of the processed logits. The same row, options, context and position
// give the same token everywhere. One object per sequence, used by one thread.

#include "saker/sample/acceptance.h"
#include "saker/sample/noise.h"
#include "saker/sample/options.h"
#include "saker/sample/processors.h"

#include <cstdint>
#include <span>

namespace saker::sample {

class Sampler {
 public:
  // Throws kInvalidArgument. `choice`: which answer of a request with several.
  Sampler(
      SamplingOptions options, int vocab_size, NamedTokens tokens = {}, std::uint32_t choice = 0
  );

  // `logits` is scratch afterwards. `context`: prompt and answer so far; `position`: the absolute
  // position that the token will have. NaN counts as -infinity, +infinity wins; throws kInternal
  // when no logit is above -infinity.
  std::int32_t choose(
      std::span<float> logits, std::span<const std::int32_t> context, std::int64_t position
  );

  // What `choose` chooses from with noise of its own at each position; one token where that has no
  // part. `logits` is scratch afterwards; throws as `choose`.
  Distribution distribution(
      std::span<float> logits, std::span<const std::int32_t> context, std::int64_t position
  );

  // A token of a distribution, by the noise that `choose` has at this position.
  std::int32_t draw(const Distribution& chances, std::int64_t position) const {
    return sample::draw(chances, noise(position, NoiseRole::kToken));
  }

  // A token of the distribution that `choose` draws from, by acceptance.h: `draft`, which was drawn
  // from `draft_chances`, or another. Noise at this position is that of `choose` for other roles.
  std::int32_t accept_or_resample(
      const Distribution& chances,
      const Distribution& draft_chances,
      std::int32_t draft,
      std::int64_t position
  ) const;

 private:
  Noise noise(std::int64_t position, NoiseRole role) const {
    return {options_.seed, choice_, position, role};
  }

  // Whether this position's draw applies xtc.
  bool xtc_at(std::int64_t position) const;
  // Whether no noise decides.
  bool is_certain(float max) const;
  void process(std::span<float> logits, std::span<const std::int32_t> context);

  SamplingOptions options_;
  NamedTokens tokens_;  // Sorted.
  std::uint32_t choice_;
  Processors processors_;
};

}  // namespace saker::sample

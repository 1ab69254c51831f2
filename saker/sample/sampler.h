// SPDX-License-Identifier: Apache-2.0
#pragma once

// From one row of raw logits to a token: processors, float32 log-softmax (float64 log-sum-exp),
// filters, and Gumbel-max:
//
//   token = argmax over the survivors of log p(x) / temperature + g(seed, choice, position, x)
//
// Ties go to the lower id. With dynatemp the survivors' entropy sets the temperature. Temperature 0
// is the argmax of the processed logits. Equal row, options, context and position give the same
// token everywhere. One object per sequence, used by one thread.

#include "saker/sample/acceptance.h"
#include "saker/sample/noise.h"
#include "saker/sample/options.h"
#include "saker/sample/processors.h"

#include <cstdint>
#include <span>

namespace saker::sample {

class Sampler {
 public:
  // Throws kInvalidArgument. `choice`: the number of the answer, for requests with several.
  Sampler(
      SamplingOptions options, int vocab_size, NamedTokens tokens = {}, std::uint32_t choice = 0
  );

  // Overwrites `logits`. `context`: prompt and answer so far; `position`: the token's absolute
  // position. NaN counts as -infinity, +infinity wins; throws kInternal if no logit is above
  // -infinity.
  std::int32_t choose(
      std::span<float> logits, std::span<const std::int32_t> context, std::int64_t position
  );

  // The distribution that `choose` draws from with the noise of each position; one token if noise
  // does not matter. Overwrites `logits`; throws as `choose`.
  Distribution distribution(
      std::span<float> logits, std::span<const std::int32_t> context, std::int64_t position
  );

  // Draws a token of a distribution with `choose`'s noise at this position.
  std::int32_t draw(const Distribution& chances, std::int64_t position) const {
    return sample::draw(chances, noise(position, NoiseRole::kToken));
  }

  // Returns a token with the distribution `chances`, by acceptance.h: `draft`, which was drawn from
  // `draft_chances`, or another. Uses noise of other roles than `choose` at this position.
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

  // True if this position's draw applies xtc.
  bool xtc_at(std::int64_t position) const;
  // True if noise does not matter.
  bool is_certain(float max) const;
  void process(std::span<float> logits, std::span<const std::int32_t> context);

  SamplingOptions options_;
  NamedTokens tokens_;  // Sorted.
  std::uint32_t choice_;
  Processors processors_;
};

}  // namespace saker::sample

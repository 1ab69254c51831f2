// SPDX-License-Identifier: Apache-2.0
#pragma once

// The choice of tokens in drafters that have logits. It uses the options and noise of the answer,
// so equal logits give equal tokens.

#include "saker/generate/drafter.h"
#include "saker/generate/sequence.h"
#include "saker/sample/sampler.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace saker::generate {

class DraftSampler {
 public:
  // Throws kInvalidArgument for options out of range.
  DraftSampler(const SequenceRequest& request, int vocab_size)
      : sampler_(request.sampling, vocab_size, named_tokens(request)),
        with_chances_(request.speculation.acceptance == Acceptance::kRejection) {}

  // Returns the token at `position`; adds its distribution to `proposal` for acceptance by
  // rejection. Arguments and errors: see sample::Sampler::choose.
  std::int32_t choose(
      std::span<float> logits,
      std::span<const std::int32_t> context,
      std::int64_t position,
      Proposal& proposal
  ) {
    if (!with_chances_) {
      return sampler_.choose(logits, context, position);
    }
    proposal.chances.push_back(sampler_.distribution(logits, context, position));
    return sampler_.draw(proposal.chances.back(), position);
  }

  // Adds the token of these logits to the proposal and to `context`, which ends with its tokens.
  // Returns true if the proposal wants more. If no token can be chosen, logs that with the
  // drafter's name and becomes unusable.
  bool extend(
      Proposal& proposal,
      std::vector<std::int32_t>& context,
      std::span<float> logits,
      std::string_view drafter
  );

  bool usable() const { return usable_; }

 private:
  sample::Sampler sampler_;
  bool with_chances_;
  bool usable_ = true;
};

}  // namespace saker::generate

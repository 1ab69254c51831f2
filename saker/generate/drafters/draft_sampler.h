// SPDX-License-Identifier: Apache-2.0
#pragma once

// How drafters that have logits choose: with the options and the noise of the answer they draft
// for, so that equal logits give equal tokens.

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

  // The token at `position`, and in `proposal` what it was drawn from where that is wanted.
  // Arguments and errors as those of sample::Sampler::choose.
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

  // Adds the token of these logits to a proposal and to `context`, which ends with its tokens;
  // whether it wants more. Where there is none to choose, says so, naming the drafter, and is not
  // usable any more.
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

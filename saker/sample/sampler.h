// SPDX-License-Identifier: Apache-2.0
#pragma once

// From one row of raw logits to a token: processors, float32 log-softmax (float64 log-sum-exp),
// filters, and Gumbel-max:
//
//   token = argmax over the survivors of log p(x) / temperature + g(seed, choice, position, x)
//
// with ties to the lower id; temperature 0 is the argmax of the processed logits. The same row,
// options, context and position give the same token everywhere. One object per sequence, used by
// one thread.

#include "saker/sample/options.h"
#include "saker/sample/processors.h"

#include <cstdint>
#include <span>
#include <vector>

namespace saker::sample {

class Sampler {
 public:
  // Throws kInvalidArgument. `xtc_exempt`: ids that xtc never removes (line break and EOS);
  // `choice`: which answer of a request with several.
  Sampler(
      SamplingOptions options,
      int vocab_size,
      std::vector<std::int32_t> xtc_exempt = {},
      std::uint32_t choice = 0
  );

  // `logits` is scratch afterwards. `context`: prompt and answer so far; `position`: the absolute
  // position that the token will have. NaN counts as -infinity, +infinity wins; throws kInternal
  // when no logit is above -infinity.
  std::int32_t choose(
      std::span<float> logits, std::span<const std::int32_t> context, std::int64_t position
  );

  const SamplingOptions& options() const { return options_; }

 private:
  SamplingOptions options_;
  std::vector<std::int32_t> xtc_exempt_;
  std::uint32_t choice_;
  Processors processors_;
};

}  // namespace saker::sample

// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/drafters/draft_sampler.h"

#include "saker/base/error.h"

#include <spdlog/spdlog.h>

#include <cstddef>

namespace saker::generate {

bool DraftSampler::extend(
    Proposal& proposal,
    std::vector<std::int32_t>& context,
    std::span<float> logits,
    std::string_view drafter
) {
  const auto position = proposal.position + static_cast<std::int64_t>(proposal.tokens.size());
  try {
    const std::int32_t token = choose(logits, context, position, proposal);
    proposal.tokens.push_back(token);
    context.push_back(token);
  } catch (const Error& error) {
    spdlog::warn("a sequence goes on without its {}: {}", drafter, error.what());
    usable_ = false;
    return false;
  }
  return proposal.tokens.size() < static_cast<std::size_t>(proposal.depth);
}

}  // namespace saker::generate

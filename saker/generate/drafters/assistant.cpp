// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/drafters/assistant.h"

#include "saker/generate/drafters/draft_sampler.h"
#include "saker/generate/drafters/pending_hidden.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace saker::generate {

struct Assistant::State final : DraftState {
  State(const SequenceRequest& request, int vocab_size) : sampler(request, vocab_size) {}

  void keep(
      const mx::array& features, std::span<const std::int32_t> /*next*/, bool /*of_prompt*/
  ) override {
    const int rows = features.shape(0);
    last = mx::contiguous(mx::slice(features, {rows - 1, 0}, {rows, features.shape(1)}));
    mx::eval(*last);
  }

  DraftSampler sampler;
  std::optional<mx::array> last;  // The target's hidden state before the context's last token.
};

// One proposal while it grows.
struct Assistant::Part {
  Proposal* proposal;
  State* state;
  std::vector<std::int32_t> context;  // Includes the tokens drafted so far.
  mx::array before;                   // The hidden state before its last token.
  bool going_on = true;
};

std::unique_ptr<DraftState> Assistant::start(const SequenceRequest& request) {
  return std::make_unique<State>(request, target_.info().vocab_size);
}

void Assistant::propose(std::span<Proposal> proposals) {
  std::vector<Part> parts;
  for (Proposal& proposal : proposals) {
    auto& state = static_cast<State&>(*proposal.state);
    if (state.sampler.usable() && state.last && proposal.cache != nullptr) {
      parts.push_back(
          {&proposal, &state, {proposal.context.begin(), proposal.context.end()}, *state.last}
      );
    }
  }
  while (!parts.empty()) {
    draft_tokens(parts);
    std::erase_if(parts, [](const Part& part) { return !part.going_on; });
  }
}

void Assistant::draft_tokens(std::span<Part> parts) const {
  std::vector<std::int32_t> ids;
  std::vector<mx::array> before;
  std::vector<cache::SequenceCache*> caches;
  for (const Part& part : parts) {
    ids.push_back(part.context.back());
    before.push_back(part.before);
    caches.push_back(part.proposal->cache);
  }
  const mx::array tokens(ids.data(), {static_cast<int>(ids.size())}, mx::int32);
  const mx::array rows = assistant_.forward(tokens, joined_rows(before), caches, target_);
  const mx::array next = assistant_.project(rows);
  mx::array logits = mx::contiguous(assistant_.logits(rows));
  mx::eval(logits, next);
  const auto vocab_size = static_cast<std::size_t>(logits.shape(1));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int row = static_cast<int>(i);
    Part& part = parts[i];
    part.before = mx::slice(next, {row, 0}, {row + 1, next.shape(1)});
    part.going_on = part.state->sampler.extend(
        *part.proposal,
        part.context,
        {logits.data<float>() + i * vocab_size, vocab_size},
        "assistant"
    );
  }
}

}  // namespace saker::generate

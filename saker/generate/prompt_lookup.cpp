// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/prompt_lookup.h"

#include <algorithm>

namespace saker::generate {

namespace {

constexpr std::size_t kGram = 3;
constexpr int kPlaces = 16;             // Earlier places that are compared.
constexpr std::size_t kLongMatch = 32;  // A longer match is no better.

struct LookupState final : DraftState {
  GramIndex index;
  std::size_t predicted = 0;        // Tokens before those of the context.
  std::vector<std::int32_t> known;  // With a prediction: those, and the context as far as it came.

  // Where copies come from.
  std::span<const std::int32_t> follow(std::span<const std::int32_t> context) {
    if (predicted == 0) {
      return context;
    }
    const std::size_t old = known.size() - predicted;
    known.insert(known.end(), context.begin() + static_cast<std::ptrdiff_t>(old), context.end());
    return known;
  }
};

// Hash of the three tokens before `end`. Grams with equal hashes only lengthen a chain.
std::uint64_t gram(std::span<const std::int32_t> context, std::size_t end) {
  std::uint64_t hash = 0;
  for (std::size_t i = end - kGram; i < end; ++i) {
    hash = hash * 0x9e3779b97f4a7c15U + static_cast<std::uint32_t>(context[i]) + 1;
  }
  return hash;
}

// Number of tokens before `end` that equal the context's last ones.
std::size_t match_length(std::span<const std::int32_t> context, std::size_t end) {
  std::size_t length = 0;
  while (length < end && length < kLongMatch &&
         context[end - 1 - length] == context[context.size() - 1 - length]) {
    ++length;
  }
  return length;
}

}  // namespace

void GramIndex::follow(std::span<const std::int32_t> context) {
  // Place 0 ends no gram; it means none.
  for (std::size_t end = previous_.size(); end <= context.size(); ++end) {
    std::uint32_t before = 0;
    if (end >= kGram) {
      std::uint32_t& newest = last_[gram(context, end)];
      before = newest;
      newest = static_cast<std::uint32_t>(end);
    }
    previous_.push_back(before);
  }
}

std::size_t GramIndex::find(std::span<const std::int32_t> context) const {
  std::size_t best = 0;
  std::size_t longest = kGram - 1;
  std::size_t place = previous_[context.size()];
  for (int i = 0; i < kPlaces && place != 0 && longest < kLongMatch; ++i) {
    const std::size_t length = match_length(context, place);
    if (length > longest) {
      longest = length;
      best = place;
    }
    place = previous_[place];
  }
  return best;
}

std::unique_ptr<DraftState> PromptLookup::start(const SequenceRequest& request) {
  auto state = std::make_unique<LookupState>();
  if (!request.prediction.empty()) {
    const std::size_t end = std::min(request.prompt.size(), kLongMatch);
    state->known.assign(
        request.prompt.end() - static_cast<std::ptrdiff_t>(end), request.prompt.end()
    );
    state->known.insert(state->known.end(), request.prediction.begin(), request.prediction.end());
    state->predicted = state->known.size();
  }
  return state;
}

void PromptLookup::propose(std::span<Proposal> proposals) {
  for (Proposal& proposal : proposals) {
    auto& state = static_cast<LookupState&>(*proposal.state);
    const std::span<const std::int32_t> known = state.follow(proposal.context);
    state.index.follow(known);
    const std::size_t from = state.index.find(known);
    if (from == 0) {
      continue;
    }
    // Nothing is known behind a prediction's end.
    const bool in_prediction = from <= state.predicted;
    for (std::size_t i = from; proposal.tokens.size() < static_cast<std::size_t>(proposal.depth) &&
                               !(in_prediction && i == state.predicted);
         ++i) {
      proposal.tokens.push_back(i < known.size() ? known[i] : proposal.tokens[i - known.size()]);
    }
  }
}

}  // namespace saker::generate

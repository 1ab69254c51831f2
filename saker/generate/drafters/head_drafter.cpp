// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/drafters/head_drafter.h"

#include "saker/generate/drafters/draft_sampler.h"
#include "saker/generate/drafters/pending_hidden.h"
#include "saker/nn/forward_context.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace saker::generate {

namespace {

constexpr int kHeadPrefillRows = 512;  // Tokens per pass of the head.

mx::array ids_of(const std::vector<std::int32_t>& tokens) {
  return mx::array(tokens.data(), mx::Shape{static_cast<int>(tokens.size())});
}

mx::array row_of(const mx::array& rows, int row) {
  return mx::slice(rows, {row, 0}, {row + 1, rows.shape(1)});
}

}  // namespace

struct HeadDrafter::State final : DraftState {
  State(const HeadDrafter& drafter, const SequenceRequest& request)
      : owner(drafter),
        options{.max_kv_size = request.max_kv_size},
        cache(drafter.head_.make_cache(options)),
        sampler(request, drafter.target_.info().vocab_size) {}

  void keep(const mx::array& features, std::span<const std::int32_t> next, bool of_prompt)
      override {
    if (kept.nbytes() + features.nbytes() > owner.kept_bytes_) {
      if (of_prompt) {
        State* self = this;
        owner.prefill_draft_cache({&self, 1});
        if (last) {
          mx::eval(*last);
        }
      } else {
        restart();
      }
    }
    kept.push(features);
    tokens.insert(tokens.end(), next.begin(), next.end());
  }

  // Forgets the context so far.
  void restart() {
    kept.clear();
    tokens.clear();
    last.reset();
    cache = owner.head_.make_cache(options);
  }

  const HeadDrafter& owner;
  models::CacheOptions options;
  cache::SequenceCache cache;
  DraftSampler sampler;
  PendingHidden kept;                // Hidden states of the context after the cached rows.
  std::vector<std::int32_t> tokens;  // The token after each of `kept`.
  std::optional<mx::array> last;     // The head's output for the cache's last row [1, hidden].
};

// One proposal while it grows.
struct HeadDrafter::Part {
  Proposal* proposal;
  State* state;
  std::vector<std::int32_t> context;  // Includes the tokens drafted so far.
  mx::array last;                     // The head's output for its last token.
  bool going_on = true;
};

HeadDrafter::HeadDrafter(
    const models::DraftHead& head, const models::Model& target, std::size_t kept_bytes
)
    : head_(head),
      target_(target),
      kept_bytes_(kept_bytes),
      captured_(head.captured_layers(target.info())) {}

std::unique_ptr<DraftState> HeadDrafter::start(const SequenceRequest& request) {
  return std::make_unique<State>(*this, request);
}

void HeadDrafter::propose(std::span<Proposal> proposals) {
  std::vector<State*> states;
  for (const Proposal& proposal : proposals) {
    auto& state = static_cast<State&>(*proposal.state);
    if (state.sampler.usable()) {
      states.push_back(&state);
    }
  }
  prefill_draft_cache(states);
  std::vector<Part> parts;
  std::vector<PassSpan> spans;
  for (Proposal& proposal : proposals) {
    auto& state = static_cast<State&>(*proposal.state);
    if (state.sampler.usable() && state.last) {
      parts.push_back(
          {&proposal, &state, {proposal.context.begin(), proposal.context.end()}, *state.last}
      );
      spans.push_back({.cache = &state.cache, .tokens = {}});
    }
  }
  if (parts.empty()) {
    return;
  }
  choose_tokens(parts);
  const PassTransaction transaction(spans);  // Rolled back: rows of draft tokens are not kept.
  while (!parts.empty()) {
    queue_drafted(parts);
    choose_tokens(parts);
  }
}

void HeadDrafter::prefill_draft_cache(std::span<State* const> states) const {
  while (true) {
    std::vector<State*> taken;
    std::vector<nn::Span> spans;
    std::vector<mx::array> features;
    std::vector<std::int32_t> ids;
    int room = kHeadPrefillRows;
    for (State* state : states) {
      const int count = std::min(room, state->kept.size());
      if (count > 0) {
        const auto end = state->tokens.begin() + count;
        ids.insert(ids.end(), state->tokens.begin(), end);
        state->tokens.erase(state->tokens.begin(), end);
        features.push_back(state->kept.pop(count));
        spans.push_back({&state->cache, count});
        taken.push_back(state);
        room -= count;
      }
    }
    if (spans.empty()) {
      return;
    }
    nn::ForwardContext context(std::move(spans));
    const mx::array rows = head_.forward(ids_of(ids), joined_rows(features), context, target_);
    int end = 0;
    for (std::size_t i = 0; i < taken.size(); ++i) {
      end += features[i].shape(0);
      taken[i]->last = mx::contiguous(row_of(rows, end - 1));
    }
    // The last pass is evaluated with the choice of a token, which saves one wait.
    if (std::ranges::any_of(states, [](const State* state) { return state->kept.size() > 0; })) {
      mx::eval(rows);
    }
  }
}

void HeadDrafter::choose_tokens(std::vector<Part>& parts) const {
  std::vector<mx::array> results;
  results.reserve(parts.size() + 1);
  for (const Part& part : parts) {
    results.push_back(part.last);
  }
  mx::array logits = mx::contiguous(head_.logits(joined_rows(results), target_));
  results.push_back(logits);
  mx::eval(std::move(results));
  const auto vocab_size = static_cast<std::size_t>(logits.shape(1));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    part.going_on = part.state->sampler.extend(
        *part.proposal,
        part.context,
        {logits.data<float>() + i * vocab_size, vocab_size},
        head_.name()
    );
  }
  std::erase_if(parts, [](const Part& part) { return !part.going_on; });
}

void HeadDrafter::queue_drafted(std::span<Part> parts) const {
  std::vector<nn::Span> spans;
  std::vector<mx::array> before;
  std::vector<std::int32_t> ids;
  for (const Part& part : parts) {
    spans.push_back({&part.state->cache, 1});
    before.push_back(part.last);
    ids.push_back(part.context.back());
  }
  nn::ForwardContext context(std::move(spans));
  const mx::array rows = head_.go_on(ids_of(ids), joined_rows(before), context, target_);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].last = row_of(rows, static_cast<int>(i));
  }
}

}  // namespace saker::generate

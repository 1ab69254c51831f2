// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/drafters/dflash.h"

#include "saker/base/error.h"
#include "saker/generate/drafters/draft_sampler.h"
#include "saker/generate/drafters/pending_hidden.h"
#include "saker/generate/pass.h"
#include "saker/nn/forward_context.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace saker::generate {

namespace {

constexpr int kPrefillRows = 512;  // Tokens per pass of the draft.

// The widest window of the layers; 0 if a layer has no window.
int widest_window(const models::DflashConfig& config) {
  int widest = 0;
  for (const models::LayerConfig& layer : config.decoder.layers) {
    if (layer.window == 0) {
      return 0;
    }
    widest = std::max(widest, layer.window);
  }
  return widest;
}

}  // namespace

struct Dflash::State final : DraftState {
  State(const Dflash& drafter, const SequenceRequest& request)
      : owner(drafter),
        cache(drafter.draft_.make_cache({.max_kv_size = request.max_kv_size})),
        sampler(request, drafter.target_.info().vocab_size) {}

  void keep(const mx::array& features, std::span<const std::int32_t> /*next*/, bool of_prompt)
      override {
    if (kept.nbytes() + features.nbytes() > owner.kept_bytes_) {
      if (of_prompt) {
        State* self = this;
        owner.prefill_draft_cache({&self, 1});
      } else {
        restart();
      }
    }
    kept.push(features);
    if (owner.widest_ > 0 && kept.size() > std::int64_t{2} * owner.widest_) {
      const mx::array newest = kept.pop(kept.size(), owner.widest_);
      restart();
      kept.push(newest);
    }
  }

  // Forgets the context so far.
  void restart() {
    kept.clear();
    cache.clear();
  }

  const Dflash& owner;
  cache::SequenceCache cache;
  DraftSampler sampler;
  PendingHidden kept;  // Hidden states of the context after the cached rows.
  bool usable = true;
};

// One proposal while it is made.
struct Dflash::Part {
  Proposal* proposal;
  State* state;
  std::vector<std::int32_t> context;  // Includes the tokens drafted so far.
};

Dflash::Dflash(
    const models::DflashDraft& draft, const models::Model& target, std::size_t kept_bytes
)
    : draft_(draft),
      target_(target),
      kept_bytes_(kept_bytes),
      widest_(widest_window(draft.config())) {
  models::check_target(draft.config(), target.info());
}

int Dflash::max_depth() const {
  return std::min(draft_.config().block_size - 1, kMaxDraftDepth);
}

std::unique_ptr<DraftState> Dflash::start(const SequenceRequest& request) {
  return std::make_unique<State>(*this, request);
}

void Dflash::propose(std::span<Proposal> proposals) {
  std::vector<Part> parts;
  std::vector<State*> states;
  for (Proposal& proposal : proposals) {
    auto& state = static_cast<State&>(*proposal.state);
    proposal.depth = std::min(proposal.depth, max_depth());
    if (state.usable && proposal.depth > 0) {
      parts.push_back({&proposal, &state, {proposal.context.begin(), proposal.context.end()}});
      states.push_back(&state);
    }
  }
  if (!parts.empty()) {
    prefill_draft_cache(states);
    draft(parts);
  }
}

void Dflash::prefill_draft_cache(std::span<State* const> states) const {
  while (true) {
    std::vector<nn::Span> spans;
    std::vector<mx::array> features;
    int room = kPrefillRows;
    for (State* state : states) {
      const int count = std::min(room, state->kept.size());
      if (count > 0) {
        features.push_back(state->kept.pop(count));
        spans.push_back({&state->cache, count});
        room -= count;
      }
    }
    if (spans.empty()) {
      return;
    }
    nn::ForwardContext context(std::move(spans));
    draft_.remember(joined_rows(features), context);
  }
}

void Dflash::draft(std::span<Part> parts) const {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> drafted;  // Indices of the masks.
  std::vector<nn::Span> spans;
  std::vector<PassSpan> blocks;
  for (const Part& part : parts) {
    const int depth = part.proposal->depth;
    ids.push_back(part.context.back());
    for (int i = 0; i < depth; ++i) {
      drafted.push_back(static_cast<std::int32_t>(ids.size()));
      ids.push_back(draft_.config().mask_token);
    }
    spans.push_back({&part.state->cache, depth + 1});
    blocks.push_back({.cache = &part.state->cache, .tokens = {}});
  }
  const PassTransaction transaction(blocks);  // Rolled back: a block's rows are not kept.
  nn::ForwardContext context(std::move(spans));
  const mx::array tokens(ids.data(), {static_cast<int>(ids.size())}, mx::int32);
  const mx::array rows = mx::take(
      draft_.forward(target_.embed(tokens), context),
      mx::array(drafted.data(), mx::Shape{static_cast<int>(drafted.size())}),
      0
  );
  mx::array logits = mx::contiguous(draft_.logits(rows, target_));
  const auto* selector = draft_.selector();
  mx::array projected =
      selector == nullptr ? mx::zeros({1, 1}) : mx::contiguous(selector->project(rows));
  mx::eval(logits, projected);
  const auto vocab_size = static_cast<std::size_t>(logits.shape(1));
  const std::size_t rank = selector == nullptr ? 0 : static_cast<std::size_t>(projected.shape(1));
  std::size_t first = 0;
  for (Part& part : parts) {
    const auto depth = static_cast<std::size_t>(part.proposal->depth);
    choose(
        part,
        {logits.data<float>() + first * vocab_size, depth * vocab_size},
        {projected.data<float>() + first * rank, depth * rank}
    );
    first += depth;
  }
}

void Dflash::choose(Part& part, std::span<float> logits, std::span<const float> projected) const {
  Proposal& proposal = *part.proposal;
  const auto depth = static_cast<std::size_t>(proposal.depth);
  const std::size_t vocab_size = logits.size() / depth;
  const std::size_t rank = projected.size() / depth;
  const auto* selector = draft_.selector();
  try {
    for (std::size_t i = 0; i < depth; ++i) {
      const auto row = logits.subspan(i * vocab_size, vocab_size);
      if (selector != nullptr) {
        selector->rescore(row, projected.subspan(i * rank, rank), part.context.back());
      }
      const auto position = proposal.position + static_cast<std::int64_t>(i);
      const std::int32_t token = part.state->sampler.choose(row, part.context, position, proposal);
      proposal.tokens.push_back(token);
      part.context.push_back(token);
    }
  } catch (const Error& error) {
    spdlog::warn("a sequence goes on without its DFlash draft: {}", error.what());
    part.state->usable = false;
  }
}

}  // namespace saker::generate

// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/drafters/draft_model.h"

#include "saker/base/error.h"
#include "saker/generate/drafters/draft_sampler.h"
#include "saker/generate/pass.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace saker::generate {

namespace {

using Tokens = std::vector<std::int32_t>;

struct ModelState final : DraftState {
  ModelState(cache::SequenceCache rows, const SequenceRequest& request, int vocab_size)
      : cache(std::move(rows)), sampler(request, vocab_size) {}

  void acknowledge(int count) override {
    if (std::exchange(open, false)) {
      cache.commit(std::min(count, tentative));
    }
    tentative = 0;
  }

  cache::SequenceCache cache;
  DraftSampler sampler;
  bool open = false;  // A transaction for rows of draft tokens is open.
  int tentative = 0;  // Rows in that transaction.
  bool usable = true;
};

}  // namespace

// One proposal while it grows.
struct DraftModel::Part {
  Proposal* proposal;
  ModelState* state;
  Tokens context;  // Includes the tokens drafted so far.
  bool going_on = true;

  // The next tokens to run, at most `limit`.
  Tokens pending(std::size_t limit) const {
    const auto first = context.begin() + static_cast<std::ptrdiff_t>(state->cache.offset());
    const auto left = static_cast<std::size_t>(context.end() - first);
    return {first, first + static_cast<std::ptrdiff_t>(std::min(limit, left))};
  }
};

DraftModel::DraftModel(const models::Model& model, int prefill_step)
    : model_(model), prefill_step_(static_cast<std::size_t>(prefill_step)) {}

std::unique_ptr<DraftState> DraftModel::start(const SequenceRequest& request) {
  return std::make_unique<ModelState>(
      model_.make_cache({.max_kv_size = request.max_kv_size, .kv_bits = request.kv_bits}),
      request,
      model_.info().vocab_size
  );
}

void DraftModel::propose(std::span<Proposal> proposals) {
  std::vector<Part> parts;
  for (Proposal& proposal : proposals) {
    auto& state = static_cast<ModelState&>(*proposal.state);
    state.usable =
        state.usable && state.sampler.usable() && can_take(proposal, state.cache.offset());
    if (state.usable) {
      parts.push_back({&proposal, &state, {proposal.context.begin(), proposal.context.end()}});
    }
  }
  try {
    catch_up(parts);
    while (!parts.empty()) {
      draft_tokens(parts);
      std::erase_if(parts, [](const Part& part) { return !part.going_on; });
    }
  } catch (...) {
    for (const Proposal& proposal : proposals) {
      proposal.state->acknowledge(0);
    }
    throw;
  }
}

bool DraftModel::can_take(Proposal& proposal, std::int64_t rows) const {
  const models::ModelInfo& info = model_.info();
  if (info.context_length > 0) {
    const auto room = info.context_length - static_cast<std::int64_t>(proposal.context.size());
    proposal.depth = static_cast<int>(std::min<std::int64_t>(proposal.depth, room));
  }
  return proposal.depth > 0 &&
         std::ranges::all_of(
             proposal.context.subspan(static_cast<std::size_t>(rows)),
             [&info](std::int32_t id) { return id >= 0 && id < info.vocab_size; }
         );
}

void DraftModel::catch_up(std::span<const Part> parts) const {
  for (const Part& part : parts) {
    cache::SequenceCache& cache = part.state->cache;
    while (part.context.size() - static_cast<std::size_t>(cache.offset()) > prefill_step_) {
      const PassSpan span{.cache = &cache, .tokens = part.pending(prefill_step_)};
      run_committed({&span, 1});
    }
  }
}

RowLogits DraftModel::run_committed(std::span<const PassSpan> spans) const {
  PassTransaction transaction(spans);
  RowLogits logits = run_rows(model_, spans);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    transaction.commit(i, static_cast<std::int64_t>(spans[i].tokens.size()));
  }
  return logits;
}

void DraftModel::draft_tokens(std::span<Part> parts) const {
  // All parts have drafted the same number of tokens.
  const bool tentative = !parts.front().proposal->tokens.empty();
  std::vector<PassSpan> spans;
  for (const Part& part : parts) {
    ModelState& state = *part.state;
    spans.push_back({.cache = &state.cache, .tokens = part.pending(prefill_step_), .logit_rows = 1}
    );
    if (tentative && !state.open) {
      state.cache.begin();
      state.open = true;
    }
  }
  RowLogits logits = tentative ? run_rows(model_, spans) : run_committed(spans);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    part.state->tentative += tentative ? 1 : 0;
    part.going_on = part.state->sampler.extend(
        *part.proposal, part.context, logits.row(static_cast<int>(i)), "draft model"
    );
  }
}

}  // namespace saker::generate

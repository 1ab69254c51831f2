// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/speculator.h"

#include "saker/base/error.h"
#include "saker/generate/prompt_lookup.h"
#include "saker/nn/recurrent_rows.h"

#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::generate {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxAutoDepth = 16;
// A pass that checks drafts also has the last token.
static_assert(kMaxDraftDepth + 1 <= nn::kReplayedRows);

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string_view what_it_needs(DrafterKind kind) {
  switch (kind) {
    case DrafterKind::kDflash:
      return "a DFlash draft";
    case DrafterKind::kEagle3:
      return "an EAGLE-3 head as its draft";
    case DrafterKind::kMtp:
      return "a model that brings an MTP head, or one as its draft";
    default:
      return "a draft model";
  }
}

// The names of drafters: "prompt-lookup, mtp".
template <typename Sources>
std::string names_of(const Sources& sources) {
  std::vector<std::string_view> names;
  for (const auto& [kind, source] : sources) {
    names.push_back(drafter_name(kind));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Most tokens that this draft may have.
int limit_of(const Speculator::Draft& draft) {
  const int depth = draft.drafting->depth;
  return std::min(draft.max_tokens, depth == kAutoDepth ? kMaxAutoDepth : depth);
}

}  // namespace

bool Drafting::takes_forced() const {
  constexpr int kTried = 8;
  return depth != 0 && (forced_checked < kTried || 2 * forced_right >= forced_checked);
}

Speculator::Speculator(Drafters drafters) {
  for (auto& [kind, drafter] : drafters) {
    Source& source = sources_[kind];
    source.control = DepthControl(drafter->cost());
    source.drafter = std::move(drafter);
  }
  if (!sources_.contains(DrafterKind::kPromptLookup)) {
    sources_[DrafterKind::kPromptLookup].drafter = std::make_unique<PromptLookup>();
  }
}

Drafting Speculator::start(const SequenceRequest& request) const {
  const Speculation& wanted = request.speculation;
  require(
      wanted.depth == kAutoDepth || (wanted.depth >= 0 && wanted.depth <= kMaxDraftDepth),
      ErrorCode::kInvalidArgument,
      "draft_depth: got {}, expected auto or 0 to {}",
      wanted.depth,
      kMaxDraftDepth
  );
  Drafting drafting{.drafter = wanted.drafter, .depth = wanted.depth, .state = nullptr};
  if (wanted.drafter == DrafterKind::kNone || wanted.depth == 0) {
    return drafting;
  }
  const auto source = sources_.find(wanted.drafter);
  require(
      source != sources_.end(),
      ErrorCode::kUnsupported,
      "speculate: {} needs {}; there is {}",
      drafter_name(wanted.drafter),
      what_it_needs(wanted.drafter),
      names_of(sources_)
  );
  try {
    drafting.state = source->second.drafter->start(request);
    drafting.rates = source->second.rates.softened();
  } catch (const std::exception& error) {
    spdlog::warn("an answer goes on without drafts: {}", error.what());
  }
  return drafting;
}

std::span<const int> Speculator::captured_layers(const Drafting& drafting) const {
  const auto source = drafting.state ? sources_.find(drafting.drafter) : sources_.end();
  return source == sources_.end() ? std::span<const int>()
                                  : source->second.drafter->captured_layers();
}

void Speculator::keep(
    Drafting& drafting,
    const mx::array& features,
    std::span<const std::int32_t> next,
    bool of_prompt
) {
  try {
    drafting.state->keep(features, next, of_prompt);
  } catch (const std::exception& error) {
    spdlog::warn("drafting failed, an answer goes on without: {}", error.what());
    drafting.state = nullptr;
  }
}

void Speculator::propose(std::span<Draft> drafts, bool measured) {
  for (auto& [kind, source] : sources_) {
    std::vector<Draft*> asked;
    for (Draft& draft : drafts) {
      if (!draft.is_forced && draft.drafting->drafter == kind && draft.drafting->state &&
          limit_of(draft) > 0) {
        asked.push_back(&draft);
      }
    }
    source.seconds = 0.0;
    source.steady = true;
    if (!asked.empty()) {
      propose(source, asked, static_cast<int>(drafts.size()), measured);
    }
  }
}

void Speculator::propose(
    Source& source, std::span<Draft* const> asked, int other_rows, bool measured
) {
  std::vector<int> depths;
  for (const Draft* draft : asked) {
    depths.push_back(std::min(limit_of(*draft), source.drafter->max_depth()));
  }
  const bool is_free = source.drafter->is_free();
  if (is_free) {
    ask(source, asked, depths);
  }
  std::vector<DepthControl::Candidate> candidates;
  std::vector<std::size_t> adjustable;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    if (asked[i]->drafting->depth == kAutoDepth) {
      const int limit = is_free ? static_cast<int>(asked[i]->tokens.size()) : depths[i];
      candidates.push_back({&asked[i]->drafting->rates, limit});
      adjustable.push_back(i);
    }
  }
  const std::vector<int> chosen = source.control.choose(candidates, other_rows, measured);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    depths[adjustable[i]] = chosen[i];
  }
  if (is_free) {
    for (std::size_t i = 0; i < asked.size(); ++i) {
      auto& tokens = asked[i]->tokens;
      tokens.resize(std::min(tokens.size(), static_cast<std::size_t>(depths[i])));
    }
  } else {
    ask(source, asked, depths);
  }
}

void Speculator::ask(Source& source, std::span<Draft* const> drafts, std::span<const int> depths) {
  const auto start = Clock::now();
  std::vector<Proposal> proposals;
  std::vector<Draft*> owners;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    if (depths[i] == 0) {
      continue;
    }
    Drafting& drafting = *drafts[i]->drafting;
    const std::size_t size = drafts[i]->context.size();
    source.steady = source.steady && size <= drafting.resume_length;
    drafting.resume_length = size + static_cast<std::size_t>(depths[i]) + 1;
    proposals.push_back(
        {.state = drafting.state.get(),
         .context = drafts[i]->context,
         .position = drafts[i]->position,
         .depth = depths[i],
         .cache = drafts[i]->cache}
    );
    owners.push_back(drafts[i]);
  }
  if (proposals.empty()) {
    return;
  }
  try {
    source.drafter->propose(proposals);
    for (std::size_t i = 0; i < proposals.size(); ++i) {
      owners[i]->tokens = std::move(proposals[i].tokens);
      owners[i]->chances = std::move(proposals[i].chances);
    }
  } catch (const std::exception& error) {
    spdlog::warn("drafting failed, answers go on without: {}", error.what());
    for (Draft* owner : owners) {
      owner->drafting->state = nullptr;
    }
  }
  source.seconds = seconds_since(start);
}

void Speculator::Draft::force(std::vector<std::int32_t> forced) {
  forced.resize(std::min(forced.size(), static_cast<std::size_t>(limit_of(*this))));
  is_forced = !forced.empty();
  tokens = std::move(forced);
}

void Speculator::Draft::count() const {
  if (!tokens.empty()) {
    drafting->counts.rounds += 1;
    drafting->counts.drafted += static_cast<int>(tokens.size());
    drafting->counts.accepted += accepted;
  }
}

void Speculator::finish_round(std::span<Draft> drafts, double pass_seconds) {
  DepthControl::Round round{.pass_seconds = pass_seconds};
  for (Draft& draft : drafts) {
    const auto drafted = static_cast<int>(draft.tokens.size());
    round.rows += 1 + drafted;
    round.tokens += draft.chosen;
    Drafting& drafting = *draft.drafting;
    if (drafting.state) {
      drafting.state->acknowledge(draft.is_forced ? 0 : draft.accepted);
    }
    if (drafted == 0) {
      continue;
    }
    spdlog::trace(
        "draft by {}: {} of {} tokens right, {} chosen; the pass took {:.2f} ms",
        drafter_name(draft.is_forced ? DrafterKind::kConstraint : drafting.drafter),
        draft.accepted,
        drafted,
        draft.chosen,
        pass_seconds * 1e3
    );
    // If the answer ended, the drafts after its end were not checked.
    const int judged = std::min(drafted, std::max(draft.chosen, draft.accepted));
    if (draft.is_forced) {
      drafting.forced_checked += judged;
      drafting.forced_right += draft.accepted;
      continue;
    }
    drafting.rates.observe(judged, draft.accepted);
    sources_.at(drafting.drafter).rates.observe(judged, draft.accepted);
  }
  if (pass_seconds <= 0.0) {
    return;
  }
  for (auto& [kind, source] : sources_) {
    round.depth = 0;
    for (const Draft& draft : drafts) {
      if (!draft.is_forced && draft.drafting->drafter == kind) {
        round.depth = std::max(round.depth, static_cast<int>(draft.tokens.size()));
      }
    }
    round.draft_seconds = source.seconds;
    round.steady = source.steady;
    source.control.observe(round);
  }
}

}  // namespace saker::generate

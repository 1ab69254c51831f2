// SPDX-License-Identifier: Apache-2.0
#pragma once

// Drafters in the token loop: requests of any options and depths, whose answers must be those of
// plain decoding.

#include "saker/cache/prefix_cache.h"
#include "saker/generate/batch_generator.h"
#include "saker/generate/drafter.h"

#include "tests/generate/runs.h"
#include "tests/models/random_model.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::generate {

inline constexpr std::array<int, 8> kDepths = {1, 2, 4, 7, 16, kAutoDepth, 7, 4};

// A small model with windows where its family has them.
inline Json target_config(std::string_view model_type) {
  Json config = models::small_config(model_type);
  config["sliding_window"] = 11;
  config["sliding_window_pattern"] = 2;
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 1;
  return config;
}

// One per depth.
inline std::vector<SequenceRequest> requests_of(int kv_bits) {
  std::vector<SequenceRequest> requests;
  for (std::size_t i = 0; i < kDepths.size(); ++i) {
    SequenceRequest& request = requests.emplace_back();
    // The first prompt is one token.
    for (std::size_t j = 0; j < 1 + 9 * i; ++j) {
      request.prompt.push_back(static_cast<std::int32_t>((j * 7 + i) % 49));
    }
    request.max_tokens = 30;
    request.kv_bits = kv_bits;
    request.stop_tokens = {49};
    vary_options(request, i);
  }
  return requests;
}

inline Drafters drafters_of(DrafterKind kind, std::unique_ptr<Drafter> drafter) {
  Drafters drafters;
  drafters[kind] = std::move(drafter);
  return drafters;
}

// Runs all requests in one batch, each with a depth of its own, which `shift` moves on, and the
// only drafter there is; how much was drafted.
inline SpeculationCounts expect_plain_answers(
    const models::Model& target,
    Drafters drafters,
    const std::vector<SequenceRequest>& requests,
    std::size_t shift = 0
) {
  const auto depth_of = [shift](std::size_t i) { return kDepths.at((i + shift) % kDepths.size()); };
  const DrafterKind kind = drafters.begin()->first;
  std::vector<Outcome> outcomes(requests.size());
  BatchGenerator generator(
      target, {.prefill_step = 16, .max_batch = 8}, nullptr, std::move(drafters)
  );
  for (std::size_t i = 0; i < requests.size(); ++i) {
    SequenceRequest request = copy_of(requests[i]);
    request.speculation.drafter = kind;
    request.speculation.depth = depth_of(i);
    generator.add(std::move(request), std::make_unique<Recorder>(outcomes[i]));
  }
  while (!generator.idle()) {
    generator.step();
  }
  SpeculationCounts counts;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    SCOPED_TRACE("depth " + std::to_string(depth_of(i)));
    expect_same(outcomes[i], run_alone(target, copy_of(requests[i])));
    counts.drafted += outcomes[i].end.speculation.drafted;
    counts.accepted += outcomes[i].end.speculation.accepted;
  }
  return counts;
}

// Each prompt at each depth, over rows as they are, bounded ones and codes.
template <typename MakeDrafters>
void expect_plain_answers_over_caches(
    const models::Model& target, const MakeDrafters& make_drafters
) {
  for (const auto& [kv_bits, max_kv_size] : {std::pair(16, 0), {16, 20}, {8, 0}, {4, 0}}) {
    SCOPED_TRACE(std::to_string(kv_bits) + " bits, at most " + std::to_string(max_kv_size));
    auto requests = requests_of(kv_bits);
    for (SequenceRequest& request : requests) {
      request.max_kv_size = max_kv_size;
    }
    for (std::size_t shift = 0; shift < kDepths.size(); ++shift) {
      expect_plain_answers(target, make_drafters(), requests, shift);
    }
  }
}

// One prompt twice, with rows of the first run known in the second one.
template <typename MakeDrafters>
void expect_drafts_after_known_rows(
    const models::Model& target, const MakeDrafters& make_drafters
) {
  cache::PrefixCacheOptions options;
  options.byte_budget = std::size_t{64} << 20;
  options.interval = 16;
  cache::PrefixCache prefixes(options);
  Drafters drafters = make_drafters();
  const DrafterKind kind = drafters.begin()->first;
  BatchGenerator generator(target, {}, &prefixes, std::move(drafters));
  SequenceRequest request = request_of({}, 30);
  for (int i = 0; i < 90; ++i) {
    request.prompt.push_back(i * 5 % 50);
  }
  const Outcome plain = run_alone(target, copy_of(request));
  for (int run = 0; run < 2; ++run) {
    Outcome outcome;
    SequenceRequest again = copy_of(request);
    again.prefix_key = "key";
    again.speculation = {kind, 5};
    generator.add(std::move(again), std::make_unique<Recorder>(outcome));
    while (!generator.idle()) {
      generator.step();
    }
    expect_same(outcome, plain);
    EXPECT_GT(outcome.end.speculation.drafted, 0);
    EXPECT_EQ(outcome.end.drafter, kind);
    EXPECT_EQ(outcome.end.cached_tokens > 0, run > 0);
  }
}

// Of three answers, the second is cancelled on its way: the others stay as they are, and what it
// has is where plain decoding goes on from.
inline void expect_cancelling_leaves_the_rest(const models::Model& target, Drafters drafters) {
  const DrafterKind kind = drafters.begin()->first;
  const auto requests = requests_of(16);
  std::vector<Outcome> outcomes(3);
  BatchGenerator generator(target, {}, nullptr, std::move(drafters));
  std::vector<std::uint64_t> ids;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    SequenceRequest request = copy_of(requests[i + 3]);
    request.speculation = {kind, 4};
    ids.push_back(generator.add(std::move(request), std::make_unique<Recorder>(outcomes[i])));
  }
  for (int step = 0; step < 9; ++step) {
    generator.step();
  }
  generator.cancel(ids[1]);
  while (!generator.idle()) {
    generator.step();
  }
  EXPECT_EQ(outcomes[1].end.reason, EndReason::kCancelled);
  expect_same(outcomes[0], run_alone(target, copy_of(requests[3])));
  expect_same(outcomes[2], run_alone(target, copy_of(requests[5])));
  SequenceRequest rest = copy_of(requests[4]);
  rest.prompt = outcomes[1].end.context;
  rest.cache = std::move(outcomes[1].end.cache);
  rest.max_tokens = requests[4].max_tokens - static_cast<int>(outcomes[1].tokens.size());
  const Outcome whole = run_alone(target, copy_of(requests[4]));
  EXPECT_EQ(run_alone(target, std::move(rest)).end.context, whole.end.context);
}

}  // namespace saker::generate

// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sequence between `add` and its end: what was asked, what it has so far, and its timing.

#include "saker/cache/prefix_cache.h"
#include "saker/generate/sequence.h"
#include "saker/generate/speculator.h"
#include "saker/sample/sampler.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

namespace saker::generate {

struct RunningSequence {
  using Clock = std::chrono::steady_clock;

  // Takes the prompt out of the request, which may have a cache. Throws kInvalidArgument for
  // options out of range.
  RunningSequence(
      std::uint64_t sequence_id,
      SequenceRequest wanted,
      std::unique_ptr<Listener> events,
      int vocab_size
  );

  // Rows of the context that are in the cache. REQUIRES: a cache.
  int cached() const { return static_cast<int>(request.cache->offset() - request.unknown_rows); }

  // Rows to run before the next token can be chosen: 1 while generating.
  int pending() const { return static_cast<int>(context.size()) - cached(); }

  // The position of the next token.
  std::int64_t position() const {
    return request.unknown_rows + static_cast<std::int64_t>(context.size());
  }

  // Tells the listener, once.
  void end(EndReason reason, std::exception_ptr error = nullptr);

  std::uint64_t id;
  SequenceRequest request;
  std::unique_ptr<Listener> listener;
  sample::Sampler sampler;
  Drafting drafting;
  std::vector<std::int32_t> context;  // Prompt and answer.
  int prompt_size;
  int generated = 0;
  std::int32_t last_choice = -1;  // The token chosen last, stop tokens too.
  int cached_tokens = 0;
  int kept = 0;  // Rows of the context that the prefix cache was given.
  cache::PrefixCache::Pin pin;
  bool begun = false;  // Rows were looked up, the prompt runs.
  bool ended = false;
  Clock::time_point added = Clock::now();
  Clock::time_point started = added;
  Clock::time_point first_token = added;
  Clock::time_point last_token = added;
};

}  // namespace saker::generate

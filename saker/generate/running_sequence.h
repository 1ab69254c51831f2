// SPDX-License-Identifier: Apache-2.0
#pragma once

// A sequence between `add` and its end: the request, the answer so far, and its timing.

#include "saker/cache/prefix_cache.h"
#include "saker/generate/scheduler.h"
#include "saker/generate/sequence.h"
#include "saker/generate/speculator.h"
#include "saker/sample/sampler.h"
#include "saker/sample/token_mask.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

namespace saker::generate {

struct RunningSequence {
  using Clock = std::chrono::steady_clock;

  // Moves the prompt out of the request, which may have a cache. Throws kInvalidArgument for
  // options out of range.
  RunningSequence(
      std::uint64_t sequence_id,
      SequenceRequest wanted,
      std::unique_ptr<Listener> events,
      int vocab_size
  );

  // Number of context tokens with rows in the cache. REQUIRES: a cache.
  int cached() const { return static_cast<int>(request.cache->offset() - request.unknown_rows); }

  // Number of tokens to run before the next one can be chosen: 1 while generating.
  int pending() const { return static_cast<int>(context.size()) - cached(); }

  // The position of the next token.
  std::int64_t position() const {
    return request.unknown_rows + static_cast<std::int64_t>(context.size());
  }

  // The moment in seconds, for the scheduler.
  static double seconds(Clock::time_point moment) {
    return std::chrono::duration<double>(moment.time_since_epoch()).count();
  }

  // The sequence as the scheduler sees it; valid while the sequence lives.
  Job job() const {
    return {
        .id = id,
        .priority = request.priority,
        .user = request.user,
        .added = seconds(added),
        .bytes = start_bytes,
        .can_wait = can_wait(),
    };
  }

  // True if its rows can be given up and run again: all their tokens are known, and none is a file's.
  bool can_wait() const {
    return request.unknown_rows == 0 && (!began_with_rows || !request.prefix_key.empty());
  }

  // Frees its rows, which run again when it begins anew. `fresh`: for drafts from then on.
  // REQUIRES: can_wait().
  void give_up_rows(Drafting fresh);

  // The mask's answer for the next token, in a vocabulary of this size. REQUIRES: a mask.
  const sample::FilledMask& next_mask(std::size_t vocab_size);

  // The mask has taken another token.
  void drop_next_mask() { is_mask_filled = false; }

  // Informs the listener, once.
  void end(EndReason reason, std::exception_ptr error = nullptr);

  std::uint64_t id;
  SequenceRequest request;
  std::unique_ptr<Listener> listener;
  sample::Sampler sampler;
  Drafting drafting;
  std::vector<std::int32_t> context;  // Prompt and answer.
  int prompt_size;
  int generated = 0;
  std::int32_t last_choice = -1;  // The token chosen last, even if it is a stop token.
  int cached_tokens = 0;
  int kept = 0;  // Context rows already passed to the prefix cache.
  cache::PrefixCache::Pin pin;
  bool begun = false;  // The prefix cache was searched and the prompt runs.
  bool ended = false;
  bool began_with_rows = false;
  bool has_begun = false;  // Once at least; `begun` is false again after its rows were given up.
  int reported = 0;        // Rows of the prompt that the listener knows of.
  int preemptions = 0;
  std::size_t start_bytes = 0;  // While it waits: memory that it needs to begin.
  sample::FilledMask filled_mask;
  bool is_mask_filled = false;
  Clock::time_point added = Clock::now();
  Clock::time_point started = added;
  Clock::time_point first_token = added;
  Clock::time_point last_token = added;
};

}  // namespace saker::generate

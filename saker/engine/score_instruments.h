// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program that scores a lot wants around it: results that were computed before, numbers of
// what ran, and a trace of every call as JSON lines. An entry is the scores of one view for one
// list of tokens; its key holds the engine, the adapter's hash, the exact strength, all numbers of
// a null adapter and all token ids, so that different questions never share an answer. All members
// may be called from any thread.

#include "saker/engine/request.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace saker::engine {

struct ScoreStats {
  std::int64_t cache_hits = 0;  // Views of requests, as are misses.
  std::int64_t cache_misses = 0;
  std::int64_t forward_passes = 0;  // Batches that reached the model.
  double scoring_wall_s = 0.0;      // Of these.
  std::int64_t batches_sent = 0;    // Batches of two requests or more, and what they held.
  std::int64_t batched_prompts = 0;
  std::int64_t max_batch_size = 0;

  double hit_rate() const;
  double avg_batch_size() const;
};

struct ScoreInstrumentsOptions {
  std::size_t cache_entries = 256;   // The longest unused leaves first; 0: nothing is kept.
  std::filesystem::path trace = {};  // Lines are added to it; empty: none.
};

// One view of one request.
struct ScoreCall {
  std::string key;
  std::string view_id;
  std::string_view op;  // "logprob_of", "rolling_logprob", "next_token_dist", "tokens".
  int top_k = 0;
  std::uint64_t prompt_hash = 0;  // Of the token ids.
};

class ScoreInstruments {
 public:
  // Throws kNotFound when the trace can't be written.
  explicit ScoreInstruments(const ScoreInstrumentsOptions& options = {});
  ScoreInstruments(const ScoreInstruments&) = delete;
  ScoreInstruments& operator=(const ScoreInstruments&) = delete;
  ~ScoreInstruments();  // Closes.

  // Names what the following calls are for, in the trace; empty: nothing.
  void set_current_probe(std::string name);
  ScoreStats stats() const;
  // Throws kInternal when the trace took a line no more; what is scored since then has none.
  void check_trace() const;
  // Ends the trace, be it broken, and drops the results; scoring goes on without both. May be
  // called again.
  void close();

  // For the engine. A known result; its hit is counted and traced.
  std::optional<ViewScores> find(const ScoreCall& call);
  // A computed one and its share of the time.
  void add(const ScoreCall& call, const ViewScores& scores, double wall_s);
  // A batch of so many requests reached the model.
  void count_batch(std::size_t requests, double wall_s);

 private:
  class State;

  std::unique_ptr<State> state_;
};

}  // namespace saker::engine

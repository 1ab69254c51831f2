// SPDX-License-Identifier: Apache-2.0
#pragma once

// Helpers for programs that score a lot: a cache of earlier results, counters, and a trace of every
// call as JSON lines. A cache entry holds one view's scores for one list of tokens. Its key
// contains the engine, the adapter's hash, the exact strength, all numbers of a null adapter and
// all token ids. So different questions never share an answer. All members may be called from any
// thread.

#include "saker/engine/request.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace saker::engine {

// Counts since the instruments were made.
struct ScoreStats {
  std::int64_t cache_hits = 0;  // Hits and misses count views of requests.
  std::int64_t cache_misses = 0;
  std::int64_t forward_passes = 0;  // Batches that reached the model.
  double scoring_wall_s = 0.0;      // Time of these batches.
  std::int64_t batches_sent = 0;    // Batches of two requests or more, and their requests.
  std::int64_t batched_prompts = 0;
  std::int64_t max_batch_size = 0;

  // Hits per question; 0 without questions.
  double hit_rate() const;
  // Requests per batch in `batches_sent`; 0 without batches.
  double avg_batch_size() const;
};

// Where results and traces go.
struct ScoreInstrumentsOptions {
  std::size_t cache_entries = 256;   // The least recently used leaves first; 0: nothing is kept.
  std::filesystem::path trace = {};  // Lines are appended; empty: no trace.
};

// One view of one request.
struct ScoreCall {
  std::string key;  // Everything that the result depends on.
  std::string view_id;
  std::string_view op;  // "logprob_of", "rolling_logprob", "next_token_dist", "tokens".
  int top_k = 0;
  std::uint64_t prompt_hash = 0;  // Hash of the token ids.
};

// Known results, counters and the trace.
class ScoreInstruments {
 public:
  // Throws kNotFound when the trace can't be written.
  explicit ScoreInstruments(const ScoreInstrumentsOptions& options = {});
  ScoreInstruments(const ScoreInstruments&) = delete;
  ScoreInstruments& operator=(const ScoreInstruments&) = delete;
  ~ScoreInstruments();  // Closes.

  // Names the purpose of the following calls in the trace; empty: none.
  void set_current_probe(std::string name);
  // Counts so far.
  ScoreStats stats() const;
  // Throws kInternal if a line of the trace could not be written; later calls are not traced.
  void check_trace() const;
  // Ends the trace, even after it failed, and drops the results. Scoring continues without either.
  // May be called again.
  void close();

  // For the engine: a known result. Counts and traces the hit.
  std::optional<ViewScores> find(const ScoreCall& call);
  // Adds a computed result and its share of the time.
  void add(const ScoreCall& call, const ViewScores& scores, double wall_s);
  // Counts a batch of requests that reached the model.
  void count_batch(std::size_t requests, double wall_s);

 private:
  class State;

  std::unique_ptr<State> state_;
};

}  // namespace saker::engine

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs many sequences together. Each step packs the next token of every generating sequence, and
// prompt tokens up to a budget, into one flat pass of the model. Sequences join and leave at any
// step without padding or copying. A token's bits do not depend on the tokens beside it, so each
// answer equals that of the sequence run alone. A sequence that fails ends alone with its error.
//
// With a prefix cache, a sequence starts from rows that earlier ones left there. If an earlier
// sequence is still running a prompt with the same beginning, the new one waits for its rows.
//
// A sequence with a drafter has several tokens in a pass: its next token, then its draft tokens.
// The answer's tokens are chosen one by one, as in plain decoding, while they equal the draft;
// later ones are rolled back. The answer is the same to the bit, unless the request accepts by
// rejection.
//
// Cached rows stay within a budget of memory. A running sequence may have to give its rows up, to the
// prefix cache as far as that has room, for one of higher priority or for want of memory. Later it
// goes on with the same bits.
//
// A step's cache changes are a transaction. A step that fails is rolled back, and its sequences are
// tried one by one. Threading: one thread, the owner of MLX.

#include "saker/cache/prefix_cache.h"
#include "saker/generate/pass.h"
#include "saker/generate/row_memory.h"
#include "saker/generate/running_sequence.h"
#include "saker/generate/scheduler.h"
#include "saker/generate/sequence.h"
#include "saker/generate/shared_rows.h"
#include "saker/generate/speculator.h"
#include "saker/generate/token_choice.h"
#include "saker/models/model.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace saker::generate {

struct BatchLimits {
  int prefill_step = 512;  // Prompt tokens per step, over all sequences.
  int max_batch = 8;       // Sequences that run together; others wait in order.
  // Tokens of prompts take int8 operands if the machine has them (kernels::linear): faster and less
  // precise. Tokens of answers never do.
  bool fast_prefill = false;
  // See SchedulerLimits; prompts of an idle engine run whole steps.
  double target_itl = 0.0;
  CacheMemory memory = {};
};

class BatchGenerator {
 public:
  // `model` and `prefixes` (null: no rows are shared) outlive the generator. Throws
  // kInvalidArgument for limits below 1.
  BatchGenerator(
      const models::Model& model,
      const BatchLimits& limits,
      cache::PrefixCache* prefixes = nullptr,
      Drafters drafters = {}
  );
  BatchGenerator(const BatchGenerator&) = delete;
  BatchGenerator& operator=(const BatchGenerator&) = delete;
  ~BatchGenerator();

  // Queues a sequence. Throws kInvalidArgument (empty or too long prompt, ids out of range, bad
  // options); then nothing was queued and the listener is not called.
  std::uint64_t add(SequenceRequest request, std::unique_ptr<Listener> listener);
  // Ends a sequence with kCancelled and its answer so far; unknown ids are ignored.
  void cancel(std::uint64_t id);
  // Takes a running sequence's rows; it waits and goes on later. Does nothing for other ids, and for
  // sequences whose rows can't run again.
  void preempt(std::uint64_t id);

  // Has rows that no running sequence needs leave until so many bytes are free; false if they are not.
  bool make_room(std::size_t bytes);

  // How often sequences gave their rows up.
  std::int64_t preemptions() const { return preemptions_; }

  const RowMemory& memory() const { return memory_; }

  // Tokens that a pass beside this generator's may have, so that it holds up no answer for long.
  int tokens_beside() const;

  bool idle() const { return active_.empty() && waiting_.empty(); }

  // Runs one pass of the model for all sequences that can run.
  void step();

 private:
  using Sequence = RunningSequence;
  using Commit = std::function<void(std::int64_t rows)>;
  struct Work;

  // Ends sequences whose deadline has passed.
  void end_late();
  void admit(double now);
  void begin(std::uint64_t id);
  // Makes memory for a waiting sequence; true if that may have been enough.
  bool unblock(std::uint64_t id, double now);
  // Rows that no running sequence needs leave; false if there are none.
  bool give_way();
  // Sequences leave until the others' next rows have memory.
  void fit(std::vector<Work>& works, double now);
  // Drops drafts whose rows have no memory.
  void fit_drafts(std::span<Work> works);
  // A sequence ends for want of memory.
  void end_without_memory(Sequence& sequence, std::size_t bytes);
  std::vector<Job> running_jobs();
  std::vector<Work> plan(double now);
  // Adds the next tokens of a prompt, at most `budget`; returns how many.
  int plan_prompt(std::size_t index, int budget, std::vector<Work>& works);
  void run_round(std::vector<Work>& works, double now);
  std::vector<Speculator::Draft> propose(std::vector<Work>& works);
  // Tokens that the sequence's mask forces become its draft.
  static void draft_forced(const Sequence& sequence, Speculator::Draft& draft);
  // Returns true if the works ran as one pass.
  bool run(std::span<Work> works);
  void run_pass(std::span<Work> works);
  // The layers that the works' drafters read.
  std::vector<int> captured_layers(std::span<const Work> works) const;
  // Passes a work's committed tokens to its drafter: `rows` tokens of the pass from `first` on.
  void keep_captured(const Work& work, const CapturedHidden& captured, int first, std::int64_t rows)
      const;
  // Fills the masks of the works' first tokens, while the pass runs.
  void fill_masks(std::span<const Work> works) const;
  // Chooses all works' tokens, one task a sequence.
  std::vector<TokenChoices> choose(std::span<Work> works, RowLogits& logits) const;
  // Passes one work's tokens on and commits the rows that plain decoding would have run.
  void advance(Work& work, TokenChoices& choices, const Commit& commit);
  // Tells the listener of a token. Returns why the sequence ends with it; none if it goes on.
  static std::optional<EndReason> report(const Work& work, const TokenChoice& choice);
  void drop_ended();
  cache::SequenceCache new_cache(const SequenceRequest& request) const;
  void finish(Sequence& sequence, EndReason reason, std::exception_ptr error = nullptr);

  const models::Model& model_;
  BatchLimits limits_;
  SharedRows shared_;
  Speculator speculator_;
  Scheduler scheduler_;
  std::uint64_t last_id_ = 0;
  std::vector<std::unique_ptr<Sequence>> active_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  RowMemory memory_;
  std::int64_t preemptions_ = 0;
};

}  // namespace saker::generate

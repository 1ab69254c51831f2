// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs many sequences together, rows and not rectangles: each step packs the next row of every
// sequence that generates, and prompt rows up to a budget, into one pass of the model. Nothing is
// padded or copied when a sequence joins or leaves, which may happen at any step. Since the bits of
// a row do not depend on the rows beside it, an answer is that of the sequence run alone. A
// sequence that fails ends alone with its error.
//
// With a prefix cache, a sequence starts from the rows that earlier ones left there. Where a
// sequence before it is still running a prompt that starts with the same tokens, it waits for those
// rows instead of running them too.
//
// An answer with a drafter has several rows in a pass: those of its draft tokens follow its next
// row. Its tokens are chosen row by row, as plain decoding chooses them, while they equal the
// draft; rows after that are rolled back. The answer is the same to the bit.
//
// Cache changes of a step are a transaction: a step that fails is rolled back and its sequences are
// tried one by one. Threading: one thread, the one that owns MLX.

#include "saker/cache/prefix_cache.h"
#include "saker/generate/pass.h"
#include "saker/generate/running_sequence.h"
#include "saker/generate/sequence.h"
#include "saker/generate/speculator.h"
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
  int prefill_step = 512;  // Prompt rows of one step, all sequences together.
  int max_batch = 8;       // Sequences that run together; others wait in order.
  // Rows of prompts take int8 operands where the machine has them (kernels::linear): sooner, and
  // less precise; rows of answers never do.
  bool fast_prefill = false;
};

class BatchGenerator {
 public:
  // `model` and `prefixes` (none: no rows are shared) outlive the generator. Throws
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
  // Ends a sequence with kCancelled and what it has; unknown ids are ignored.
  void cancel(std::uint64_t id);

  bool idle() const { return active_.empty() && waiting_.empty(); }

  // One pass of the model for all that can run.
  void step();

 private:
  using Sequence = RunningSequence;
  using Commit = std::function<void(std::int64_t rows)>;
  struct Work;

  void admit();
  std::vector<Work> plan();
  void run_round(std::vector<Work>& works);
  std::vector<Speculator::Draft> propose(std::vector<Work>& works);
  int max_draft_tokens(const Sequence& sequence) const;
  // Whether the works ran as one pass.
  bool run(std::span<const Work> works);
  void run_pass(std::span<const Work> works);
  // The layers that the works' drafters read.
  std::vector<int> captured_layers(std::span<const Work> works) const;
  // Gives a work's committed rows, which are `rows` of the pass's from `first`, to its drafter.
  void keep_captured(const Work& work, const CapturedHidden& captured, int first, std::int64_t rows)
      const;
  // Chooses tokens from the rows of one work and commits what plain decoding would have run.
  void advance(const Work& work, RowLogits& logits, int first_row, const Commit& commit);
  // Counts the token just chosen; whether it is the draft's, so that the next row holds.
  static bool is_as_drafted(const Work& work, int row);
  // Cuts drafts behind which nothing can come.
  void shorten(Speculator::Draft& draft, const SequenceRequest& request) const;
  // The token of a row of logits, which is scratch afterwards.
  static std::int32_t pick(const Work& work, int row, std::span<float> logits);
  // Why the sequence ends with this token, if it does.
  std::optional<EndReason> choose_token(const Work& work, int row, std::span<float> logits);
  void drop_ended();
  cache::SequenceCache new_cache(const SequenceRequest& request) const;
  bool shares(const Sequence& sequence) const;
  bool waits_for_prefix(std::size_t index) const;
  void start(Sequence& sequence);
  void keep_rows(Sequence& sequence);
  void finish(Sequence& sequence, EndReason reason, std::exception_ptr error = nullptr);

  const models::Model& model_;
  BatchLimits limits_;
  cache::PrefixCache* prefixes_;
  Speculator speculator_;
  std::uint64_t last_id_ = 0;
  std::vector<std::unique_ptr<Sequence>> active_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<float> row_;  // Scratch for sampling where the raw row is still needed.
};

}  // namespace saker::generate

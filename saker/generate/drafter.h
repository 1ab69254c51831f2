// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where draft tokens come from. A drafter guesses how sequences go on; one pass of the target model
// then checks the guesses. What a drafter says never changes an answer, only what it costs.
//
// A drafter is shared by all sequences; what it keeps of one is that sequence's `DraftState`. It is
// shown the whole context at each proposal and runs what is new to it then, so a sequence that is
// not drafted for costs it nothing. Threading: the thread that owns MLX.

#include "saker/cache/sequence_cache.h"
#include "saker/generate/depth_control.h"
#include "saker/generate/sequence.h"
#include "saker/kernels/mx.h"
#include "saker/sample/acceptance.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace saker::generate {

class DraftState {
 public:
  DraftState() = default;
  DraftState(const DraftState&) = delete;
  DraftState& operator=(const DraftState&) = delete;
  virtual ~DraftState() = default;

  // Ends the last proposal: its first `count` tokens are part of the context from now on, the
  // others never were.
  virtual void settle(int /*count*/) {}

  // Rows that the target has run and committed, in order: what the drafter's captured layers gave for
  // them, [n, captured * hidden], and the token that follows each in the context. May throw:
  // then the state is not used any more.
  virtual void keep(
      const mx::array& /*features*/, std::span<const std::int32_t> /*next*/, bool /*of_prompt*/
  ) {}
};

struct Proposal {
  DraftState* state = nullptr;
  std::span<const std::int32_t> context;  // Prompt and answer so far, at least one token.
  std::int64_t position = 0;              // Of the token after them.
  int depth = 1;                          // Tokens wanted, at least 1.
  cache::SequenceCache* cache = nullptr;  // The target's, to read: all rows but the last token's.
  std::vector<std::int32_t> tokens = {};  // What follows the context; up to `depth`, or nothing.
  // What each token was drawn from, for acceptance by rejection; none: they were certain.
  std::vector<sample::Distribution> chances = {};
};

class Drafter {
 public:
  Drafter() = default;
  Drafter(const Drafter&) = delete;
  Drafter& operator=(const Drafter&) = delete;
  virtual ~Drafter() = default;

  // Whether proposals cost no pass of a model, so that they may be made and not used.
  virtual bool is_free() const { return false; }

  virtual DraftCost cost() const { return DraftCost::kByToken; }

  // Tokens of one proposal at most.
  virtual int max_depth() const { return kMaxDraftDepth; }

  // Layers of the target whose output rows the states are to keep, see nn::ForwardContext.
  virtual std::span<const int> captured_layers() const { return {}; }

  virtual std::unique_ptr<DraftState> start(const SequenceRequest& request) = 0;

  // Fills in the tokens of all proposals. May throw: then none is used, and their states are not
  // asked again. REQUIRES: the last proposal of each state was settled.
  virtual void propose(std::span<Proposal> proposals) = 0;
};

}  // namespace saker::generate

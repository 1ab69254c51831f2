// SPDX-License-Identifier: Apache-2.0
#pragma once

// A source of draft tokens. A drafter guesses how sequences continue; one pass of the target model
// then checks the guesses. A drafter changes an answer's cost, not the answer, unless the request
// accepts by rejection.
//
// All sequences share a drafter; its data for one sequence is that sequence's `DraftState`. Each
// proposal passes the whole context, and the drafter runs its new tokens then. So a sequence
// without drafts costs it nothing. Threading: the thread that owns MLX.

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

  // Ends the last proposal: its first `count` tokens became part of the context, the others did
  // not.
  virtual void acknowledge(int /*count*/) {}

  // Takes tokens that the target has run and committed, in order. `features` [n, captured * hidden]
  // are their captured hidden states; `next` is the token after each in the context. May throw:
  // then the state is not used any more.
  virtual void keep(
      const mx::array& /*features*/, std::span<const std::int32_t> /*next*/, bool /*of_prompt*/
  ) {}
};

struct Proposal {
  DraftState* state = nullptr;
  std::span<const std::int32_t> context;  // Prompt and answer so far, at least one token.
  std::int64_t position = 0;              // Position of the token after the context.
  int depth = 1;                          // Number of tokens wanted, at least 1.
  cache::SequenceCache* cache = nullptr;  // The target's, read only; lacks the last token's row.
  std::vector<std::int32_t> tokens = {};  // Result: at most `depth` tokens, or none.
  // Result: the distribution of each token, for acceptance by rejection; empty: they were certain.
  std::vector<sample::Distribution> chances = {};
};

class Drafter {
 public:
  Drafter() = default;
  Drafter(const Drafter&) = delete;
  Drafter& operator=(const Drafter&) = delete;
  virtual ~Drafter() = default;

  // True if proposals need no pass of a model, so they may be made and not used.
  virtual bool is_free() const { return false; }

  virtual DraftCost cost() const { return DraftCost::kByToken; }

  // Most tokens of one proposal.
  virtual int max_depth() const { return kMaxDraftDepth; }

  // Layers of the target whose outputs the states take, see nn::ForwardContext.
  virtual std::span<const int> captured_layers() const { return {}; }

  virtual std::unique_ptr<DraftState> start(const SequenceRequest& request) = 0;

  // Fills in the tokens of all proposals. May throw: then none is used, and their states are not
  // used again. REQUIRES: the last proposal of each state was acknowledged.
  virtual void propose(std::span<Proposal> proposals) = 0;
};

}  // namespace saker::generate

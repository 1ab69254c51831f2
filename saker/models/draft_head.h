// SPDX-License-Identifier: Apache-2.0
#pragma once

// A head that drafts one token after another for its target. It runs each row of the target once,
// with the token after it, and keeps keys and values of its own. For drafted tokens its own rows
// take the place of the target's. Immutable. REQUIRES: called on the engine's thread.

#include "saker/cache/sequence_cache.h"
#include "saker/kernels/mx.h"
#include "saker/models/model.h"
#include "saker/nn/forward_context.h"

#include <string_view>
#include <vector>

namespace saker::models {

class DraftHead {
 public:
  DraftHead() = default;
  DraftHead(const DraftHead&) = delete;
  DraftHead& operator=(const DraftHead&) = delete;
  virtual ~DraftHead() = default;

  // For messages: "MTP head".
  virtual std::string_view name() const = 0;

  // The target's layers whose outputs `forward` reads, in this order; see nn::ForwardContext.
  virtual std::vector<int> captured_layers(const ModelInfo& target) const = 0;

  // For the rows of the head's own layers.
  virtual cache::SequenceCache make_cache(const CacheOptions& options) const = 0;

  // Runs the next tokens of the context's spans, ids int32 [N], that follow rows of the target:
  // `features` [N, captured * hidden] are its captured hidden states. Returns the head's rows [N,
  // hidden]. Throws kInvalidArgument for other shapes.
  virtual mx::array forward(
      const mx::array& ids,
      const mx::array& features,
      nn::ForwardContext& context,
      const Model& target
  ) const = 0;

  // As `forward`, for tokens that follow the head's own rows `before` [N, hidden].
  virtual mx::array go_on(
      const mx::array& ids,
      const mx::array& before,
      nn::ForwardContext& context,
      const Model& target
  ) const = 0;

  // The head's rows [n, hidden] -> logits of the token after the next, float32 [n, vocab_size];
  // -infinity for tokens that it does not know.
  virtual mx::array logits(const mx::array& rows, const Model& target) const = 0;
};

}  // namespace saker::models

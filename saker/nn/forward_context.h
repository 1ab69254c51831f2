// SPDX-License-Identifier: Apache-2.0
#pragma once

// The state of one pass. A pass takes a flat list of N tokens, cut into spans. A span holds the
// next tokens of one sequence, which has its own caches. Models and layers are immutable and read
// all state from here. One context serves one pass on the engine's thread.

#include "saker/cache/recurrent.h"
#include "saker/cache/sequence_cache.h"
#include "saker/kernels/mx.h"
#include "saker/kernels/ops/attend.h"
#include "saker/nn/in_flight_layers.h"
#include "saker/nn/rope.h"
#include "saker/nn/row_context.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace saker::nn {

struct Span {
  cache::SequenceCache* cache = nullptr;  // Not owned; outlives the pass.
  int row_count = 0;
  AdapterUse adapter = {};  // For all its tokens, cached ones included.
  bool int8 = false;        // Linear layers take int8 operands for its tokens, see kernels::linear.
};

// A fork: before decoder layer `layer` the pass's tokens are replicated. New token i is a copy of
// old token `rows[i]`; the new tokens are cut into `spans`. The old spans' caches serve the layers
// below, the new spans' caches the layers from `layer` on.
struct Fork {
  int layer = 0;
  std::vector<Span> spans;
  std::vector<std::int32_t> rows;
};

class ForwardContext {
 public:
  // The spans' tokens follow each other in the pass. Throws kInvalidArgument for a span without
  // tokens or cache, and for a fork whose `rows` do not match its spans.
  explicit ForwardContext(std::vector<Span> spans, std::optional<Fork> fork = std::nullopt);

  // A pass that writes no rows and reads another model's. Each span has one token, at the position
  // of its cache's last committed row; `appended` returns these layers' rows up to there. Throws
  // kInvalidArgument for spans of other sizes and for empty caches.
  static ForwardContext over_last_rows(std::vector<Span> spans, std::span<const int> layers);

  int row_count() const { return static_cast<int>(positions_.size()); }

  std::span<const Span> spans() const { return spans_; }

  // Absolute position of each token.
  std::span<const std::int64_t> positions() const { return positions_; }

  // The adapter of each token.
  const RowContext& adapters() const { return adapters_; }

  // Linear layers hand their inputs to `observer`, which outlives the pass. REQUIRES: called before
  // the pass is built.
  void observe_inputs(InputObserver& observer);

  // Reserves the pass's rows in every span's cache of this layer.
  const std::vector<kernels::AttendSpan>& append(int layer);
  // The last result of `append` for this layer, for other layers that attend to its rows. Throws
  // kInternal if it was not called since the fork.
  const std::vector<kernels::AttendSpan>& appended(int layer) const;
  // Every span's recurrent cache of this layer. Throws kInternal for a cache of another kind.
  std::vector<cache::RecurrentCache*> recurrent(int layer) const;
  // The rotation of each token, computed once per pass and kind of rope.
  const RopeTable& rope_table(const Rope& rope);

  // True if the pass's tokens fork before this layer. The decoder stack then indexes with the
  // result of `fork`, after which the context is that of the new tokens.
  bool forks_before(int layer) const { return fork_ && fork_->layer == layer; }

  mx::array fork();

  // For encoders: the type of each token; empty: all are 0.
  std::vector<std::int32_t> token_types;

  // Layers whose outputs [N, hidden] are kept, before the final norm. -1: the embedding; the number
  // of layers: the final normed output. The decoder stack fills `captured`; it throws
  // kInvalidArgument for a layer that the model lacks.
  std::vector<int> captured_layers;
  std::map<int, mx::array> captured;

  // Layers that the decoder stack has started; the destructor waits for them.
  InFlightLayers started;

  // Captured hidden states of these tokens, side by side in the order of `captured_layers`: [n,
  // captured * hidden]. Without captured layers: their rows of `final_rows` [N, hidden], the pass's
  // result. Throws kInvalidArgument for an index out of range.
  mx::array captured_hidden(const mx::array& final_rows, std::span<const std::int32_t> rows) const;

 private:
  void check(const Fork& fork) const;
  static RowContext adapters_of(std::span<const Span> spans);

  std::vector<Span> spans_;
  std::vector<std::int64_t> positions_;
  RowContext adapters_;
  std::map<const Rope*, RopeTable> rope_tables_;
  std::map<int, std::vector<kernels::AttendSpan>> appended_;  // By layer.
  std::optional<Fork> fork_;                                  // Still to come.
  InputObserver* observer_ = nullptr;                         // Not owned.
};

}  // namespace saker::nn

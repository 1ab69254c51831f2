// SPDX-License-Identifier: Apache-2.0
#pragma once

// What changes from pass to pass. A pass takes a flat list of token rows [N], cut into spans; each
// span belongs to one sequence with its own caches and holds its next rows. Models and layers are
// immutable and read all state from here. One context serves one pass on the engine's thread.

#include "saker/cache/recurrent.h"
#include "saker/cache/sequence_cache.h"
#include "saker/kernels/attend.h"
#include "saker/kernels/mx.h"
#include "saker/nn/adapter.h"
#include "saker/nn/in_flight_layers.h"
#include "saker/nn/rope.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace saker::nn {

struct Span {
  cache::SequenceCache* cache = nullptr;  // Not owned; outlives the pass.
  int row_count = 0;
  AdapterUse adapter = {};  // Of all its rows, those in the cache included.
  bool int8 = false;        // Linear layers take int8 operands for its rows, see kernels::linear.
};

// Where rows that were one so far go on as several: before decoder layer `layer`, the pass's rows
// become copies of them, `rows[i]` of those before being row i after, cut into these spans. Caches
// of the spans before hold the layers below, those of the spans here the layers from there on.
struct Fork {
  int layer = 0;
  std::vector<Span> spans;
  std::vector<std::int32_t> rows;
};

class ForwardContext {
 public:
  // Rows of the spans follow each other in the pass. Throws kInvalidArgument for a span without
  // rows or cache, and for a fork whose rows are not the spans'.
  explicit ForwardContext(std::vector<Span> spans, std::optional<Fork> fork = std::nullopt);

  // A pass that writes no rows and reads those of another model: each span's one row is at the
  // position of its cache's last committed row, and `appended` gives these layers' rows up to
  // there. Throws kInvalidArgument for spans of other sizes and for empty caches.
  static ForwardContext over_last_rows(std::vector<Span> spans, std::span<const int> layers);

  int row_count() const { return static_cast<int>(positions_.size()); }

  std::span<const Span> spans() const { return spans_; }

  // Absolute position of each row.
  std::span<const std::int64_t> positions() const { return positions_; }

  // The adapter of each row.
  const RowContext& adapters() const { return adapters_; }

  // Reserves the pass's rows in every span's cache of this layer.
  const std::vector<kernels::AttendSpan>& append(int layer);
  // What `append` returned for this layer: its rows, for layers that attend to them too. Throws
  // kInternal where it was not called since the rows forked.
  const std::vector<kernels::AttendSpan>& appended(int layer) const;
  // Every span's cache of this layer, which keeps a state instead of rows. Throws kInternal for one
  // that does not.
  std::vector<cache::RecurrentCache*> recurrent(int layer) const;
  // The rotation of each row, made once per pass and kind of rope.
  const RopeTable& rope_table(const Rope& rope);

  // Whether the pass's rows change before this layer: the decoder stack then takes the rows that
  // `fork` returns, and the context is that of the new rows.
  bool forks_before(int layer) const { return fork_ && fork_->layer == layer; }

  mx::array fork();

  // Layers whose output rows [N, hidden] are kept, before the final norm; -1 is the embedding, the
  // number of layers stands for the final normed rows. The decoder stack fills `captured`, and throws
  // kInvalidArgument for a layer that the model lacks.
  std::vector<int> captured_layers;
  std::map<int, mx::array> captured;

  // What the decoder stack began to compute; the context waits for it before it goes.
  InFlightLayers started;

  // What the captured layers gave for these rows of the pass: beside each other in the order of
  // `captured_layers`, [n, captured * hidden]. No captured: their final normed rows, out of `final_rows` [N,
  // hidden], which the pass returned. Throws kInvalidArgument for a row out of range.
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
};

}  // namespace saker::nn

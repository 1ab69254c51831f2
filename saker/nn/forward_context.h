// SPDX-License-Identifier: Apache-2.0
#pragma once

// What changes from pass to pass. A pass takes a flat list of token rows [N], cut into spans; each
// span belongs to one sequence with its own caches and holds its next rows. Models and layers are
// immutable and read all state from here. One context serves one pass on the engine's thread.

#include "saker/cache/sequence_cache.h"
#include "saker/kernels/attend.h"
#include "saker/kernels/mx.h"
#include "saker/nn/adapter.h"
#include "saker/nn/rope.h"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace saker::nn {

struct Span {
  cache::SequenceCache* cache = nullptr;  // Not owned; outlives the pass.
  int row_count = 0;
  AdapterUse adapter = {};  // Of all its rows, those in the cache included.
};

class ForwardContext {
 public:
  // Rows of the spans follow each other in the pass. Throws kInvalidArgument for a span without
  // rows or cache.
  explicit ForwardContext(std::vector<Span> spans);

  int row_count() const { return static_cast<int>(positions_.size()); }

  std::span<const Span> spans() const { return spans_; }

  // Absolute position of each row.
  std::span<const std::int64_t> positions() const { return positions_; }

  // The adapter of each row.
  const RowAdapters& adapters() const { return adapters_; }

  // Reserves the pass's rows in every span's cache of this layer.
  std::vector<kernels::AttendSpan> append(int layer);
  // The rotation of each row, made once per pass and kind of rope.
  const RopeTable& rope_table(const Rope& rope);

  // Layers whose output rows [N, hidden] are kept; -1 is the embedding. Filled by the decoder
  // stack.
  std::vector<int> tap_layers;
  std::map<int, mx::array> taps;

 private:
  std::vector<Span> spans_;
  std::vector<std::int64_t> positions_;
  RowAdapters adapters_;
  std::map<const Rope*, RopeTable> rope_tables_;
};

}  // namespace saker::nn

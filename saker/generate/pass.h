// SPDX-License-Identifier: Apache-2.0
#pragma once

// One pass of a model over the next rows of some sequences. REQUIRES: the thread that owns MLX.

#include "saker/cache/sequence_cache.h"
#include "saker/kernels/mx.h"
#include "saker/models/model.h"
#include "saker/nn/adapter.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace saker::generate {

struct PassSpan {
  cache::SequenceCache* cache = nullptr;
  std::vector<std::int32_t> tokens;  // Of the rows to run, at least one.
  int logit_rows = 0;                // Of the last rows, whose logits are wanted.
  nn::AdapterUse adapter = {};
  bool int8 = false;  // See nn::Span.
};

// Logits of the wanted rows in order, evaluated.
class RowLogits {
 public:
  RowLogits(mx::array rows, int vocab_size) : rows_(std::move(rows)), vocab_size_(vocab_size) {}

  // Row `index` of all wanted ones, to read and to overwrite.
  std::span<float> row(int index) {
    const auto size = static_cast<std::size_t>(vocab_size_);
    return {rows_.data<float>() + static_cast<std::size_t>(index) * size, size};
  }

 private:
  mx::array rows_;  // [n, vocab_size] float32; anything where n is 0.
  int vocab_size_;
};

// What some layers gave for all rows of a pass.
struct CapturedHidden {
  std::vector<int> layers;        // See nn::ForwardContext; empty: nothing is kept.
  std::map<int, mx::array> rows;  // By layer [N, hidden], evaluated.

  // Rows [first, end) of these layers beside each other, [n, wanted * hidden], maybe unevaluated.
  // REQUIRES: kept.
  mx::array of(std::span<const int> wanted, int first, int end) const;
};

// Runs and evaluates all rows. Transactions are the caller's. `captured`: filled in if given.
RowLogits run_rows(
    const models::Model& model, std::span<const PassSpan> spans, CapturedHidden* captured = nullptr
);

// Transactions over the caches of one pass: rolled back unless committed one by one.
class PassTransaction {
 public:
  explicit PassTransaction(std::span<const PassSpan> spans);
  PassTransaction(const PassTransaction&) = delete;
  PassTransaction& operator=(const PassTransaction&) = delete;
  ~PassTransaction();

  // Keeps the first `count` new rows of this span's cache. Throws kInternal for more than the span
  // has: the caches would keep what there is.
  void commit(std::size_t index, std::int64_t count);

 private:
  struct Open {
    cache::SequenceCache* cache;  // Null once committed.
    std::int64_t rows;
  };

  void roll_back();

  std::vector<Open> open_;
};

// What a pass gave whose rows were all kept.
struct AcceptedBlock {
  mx::array logits;    // Of the last row, [1, vocab_size] float32, evaluated as the other.
  mx::array captured;  // See nn::ForwardContext::captured: [n, captured * hidden], or [n, hidden].
};

// Runs tokens as the next rows of a sequence and keeps all of them, whatever the model would have
// chosen in their place. For instruments: what a round of speculation costs when every draft is
// right. Answers made of it are not the model's. Throws kInvalidArgument for no tokens, for
// ids and for layers that the model lacks; then the cache is as before.
AcceptedBlock forward_accept_all_block(
    const models::Model& model,
    cache::SequenceCache& cache,
    std::span<const std::int32_t> tokens,
    std::span<const int> captured_layers = {}
);

}  // namespace saker::generate

// SPDX-License-Identifier: Apache-2.0
#pragma once

// One pass of a model over the next tokens of some sequences. REQUIRES: the thread that owns MLX.

#include "saker/cache/sequence_cache.h"
#include "saker/kernels/mx.h"
#include "saker/models/model.h"
#include "saker/nn/adapter.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <utility>
#include <vector>

namespace saker::generate {

struct PassSpan {
  cache::SequenceCache* cache = nullptr;
  std::vector<std::int32_t> tokens;  // At least one.
  int logit_rows = 0;                // Number of last tokens whose logits are wanted.
  nn::AdapterUse adapter = {};
  bool int8 = false;  // See nn::Span.
};

// Logits of the wanted tokens, in order, evaluated.
class RowLogits {
 public:
  RowLogits(mx::array rows, int vocab_size) : rows_(std::move(rows)), vocab_size_(vocab_size) {}

  // The logits of wanted token `index`, to read and to overwrite.
  std::span<float> row(int index) {
    const auto size = static_cast<std::size_t>(vocab_size_);
    return {rows_.data<float>() + static_cast<std::size_t>(index) * size, size};
  }

 private:
  mx::array rows_;  // [n, vocab_size] float32; undefined if n is 0.
  int vocab_size_;
};

// Outputs of some layers for all tokens of a pass.
struct CapturedHidden {
  std::vector<int> layers;        // See nn::ForwardContext; empty: nothing is kept.
  std::map<int, mx::array> rows;  // By layer [N, hidden], evaluated.

  // Tokens [first, end) of these layers side by side, [n, wanted * hidden], possibly unevaluated.
  // REQUIRES: the layers were captured.
  mx::array of(std::span<const int> wanted, int first, int end) const;
};

// Runs and evaluates all tokens; fills in `captured` if given. `meanwhile`, if given, is called on
// this thread while the pass runs. Transactions are the caller's job.
RowLogits run_rows(
    const models::Model& model,
    std::span<const PassSpan> spans,
    CapturedHidden* captured = nullptr,
    const std::function<void()>& meanwhile = {}
);

// Transactions over the caches of one pass. Rolls back each one that was not committed.
class PassTransaction {
 public:
  explicit PassTransaction(std::span<const PassSpan> spans);
  PassTransaction(const PassTransaction&) = delete;
  PassTransaction& operator=(const PassTransaction&) = delete;
  ~PassTransaction();

  // Keeps the first `count` new rows of this span's cache. Throws kInternal if the span has fewer;
  // the caches themselves would accept that silently.
  void commit(std::size_t index, std::int64_t count);

 private:
  struct Open {
    cache::SequenceCache* cache;  // Null once committed.
    std::int64_t rows;
  };

  void roll_back();

  std::vector<Open> open_;
};

// Result of a pass whose rows were all kept.
struct AcceptedBlock {
  mx::array logits;    // For the last token, [1, vocab_size] float32; both are evaluated.
  mx::array captured;  // See nn::ForwardContext::captured: [n, captured * hidden], or [n, hidden].
};

// Runs tokens as the next ones of a sequence and keeps all their rows, even where the model would
// have chosen other tokens. For measurements: the cost of a round whose drafts are all right. The
// resulting text is not the model's answer. Throws kInvalidArgument for no tokens, and for ids and
// layers that the model lacks; then the cache is as before.
AcceptedBlock forward_accept_all_block(
    const models::Model& model,
    cache::SequenceCache& cache,
    std::span<const std::int32_t> tokens,
    std::span<const int> captured_layers = {}
);

}  // namespace saker::generate

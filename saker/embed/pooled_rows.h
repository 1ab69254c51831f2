// SPDX-License-Identifier: Apache-2.0
#pragma once

// The pooled rows of token sequences: one row of the model's final hidden states, or their mean, for
// each. Many sequences run in one pass. A causal sequence may be cut into several passes; a
// bidirectional one is a pass's span as a whole. A sequence's row has the same bits alone and in any
// batch. Memory is bounded by the passes, whatever the number of sequences. REQUIRES: called on the
// thread that owns MLX.

#include "saker/models/model.h"
#include "saker/models/pooling.h"
#include "saker/nn/adapter.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace saker::embed {

using TokenSpan = std::span<const std::int32_t>;

struct PoolOptions {
  models::Pooling pooling = models::Pooling::kLast;
  int prefill_step = 512;       // Tokens per pass; a longer bidirectional sequence has its own.
  nn::AdapterUse adapter = {};  // For all sequences.
  // For pairs of texts: by sequence, its first token of type 1. Empty: all tokens have type 0.
  std::vector<int> second_types = {};
  // Called before each pass; returns the tokens that it may have instead of `prefill_step`.
  std::function<int()> before_pass = {};
};

// Throws kInvalidArgument for a sequence without tokens, for one longer than the model's context,
// and for ids that the model lacks.
void check_tokens(const models::ModelInfo& info, TokenSpan tokens);

// Rows [sequences, hidden] float32, one after the other. Throws as `check_tokens`, kInvalidArgument
// for options out of range, kCapacity and std::bad_alloc without memory.
std::vector<float> pool_rows(
    const models::Model& model, std::span<const TokenSpan> sequences, const PoolOptions& options
);

}  // namespace saker::embed

// SPDX-License-Identifier: Apache-2.0
#pragma once

// How well a model expects a text: exp of the mean negative log-probability of its tokens, each
// after those before it in a window. With windows side by side (stride = context) these are the
// windows and the figure of mlx_lm.perplexity, but for the text's last tokens, which do not fill a
// window: they make a shorter one here. Threading: any thread.

#include "saker/engine/engine.h"

#include <cstdint>
#include <functional>
#include <span>

namespace saker::engine {

struct PerplexityOptions {
  int context =
      512;         // Tokens of a window; at most the model's context + 1: the last is only scored.
  int stride = 0;  // Tokens by which windows move; 0: the context.
  int batch = 8;   // Windows that run together.
  int kv_bits = 16;  // See ScoreRequest.
  View view = {};    // Whose expectation it is.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};  // Windows.
};

struct PerplexityResult {
  double perplexity = 0.0;
  double standard_error = 0.0;  // Of the perplexity: perplexity * deviation of losses / sqrt(n).
  double mean_loss = 0.0;       // Nats per scored token.
  std::int64_t scored = 0;      // Tokens; the first of the text never is.
  std::int64_t windows = 0;
  double tokens_per_second = 0.0;  // Scored ones.
};

// With stride = context, the first token of each window has nothing before it and is not scored;
// else each token is scored in the first window that has it. Throws kInvalidArgument for less than
// two tokens or options out of range, and what scoring throws.
PerplexityResult measure_perplexity(
    Engine& engine, std::span<const std::int32_t> tokens, const PerplexityOptions& options
);

}  // namespace saker::engine

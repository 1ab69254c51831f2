// SPDX-License-Identifier: Apache-2.0
#pragma once

// Perplexity of a text: exp of the mean negative log-probability of its tokens, each given the
// tokens before it in its window. With windows side by side (stride = context), windows and result
// are those of mlx_lm.perplexity. One difference: last tokens that do not fill a window make a
// shorter one here. Threading: any thread.

#include "saker/engine/engine.h"

#include <cstdint>
#include <functional>
#include <span>

namespace saker::engine {

// How a text is cut and scored.
struct PerplexityOptions {
  int context =
      512;         // Tokens per window, at most the model's context + 1 (the last is only scored).
  int stride = 0;  // Tokens by which windows move; 0: the context.
  int batch = 8;   // Windows that run together.
  int kv_bits = 16;  // See ScoreRequest.
  View view = {};    // The view that is measured.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};  // Windows.
};

// A text's perplexity and its error.
struct PerplexityResult {
  double perplexity = 0.0;
  double standard_error = 0.0;  // perplexity * deviation of losses / sqrt(n).
  double mean_loss = 0.0;       // Nats per scored token.
  std::int64_t scored = 0;      // Tokens; the text's first is never scored.
  std::int64_t windows = 0;
  double tokens_per_second = 0.0;  // Scored tokens only.
};

// With stride = context the first token of each window is not scored, since nothing is before it.
// Otherwise each token is scored in the first window that has it. Throws kInvalidArgument for fewer
// than two tokens or options out of range, and what scoring throws.
PerplexityResult measure_perplexity(
    Engine& engine, std::span<const std::int32_t> tokens, const PerplexityOptions& options
);

}  // namespace saker::engine

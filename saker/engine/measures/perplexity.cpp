// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/measures/perplexity.h"

#include "saker/base/error.h"
#include "saker/engine/windows.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

namespace saker::engine {
namespace {

// Mean and variance of a stream of numbers (Welford's method).
class Moments {
 public:
  void add(double x) {
    ++count_;
    const double off = x - mean_;
    mean_ += off / static_cast<double>(count_);
    squares_ += off * (x - mean_);
  }

  std::int64_t count() const { return count_; }

  double mean() const { return mean_; }

  // Standard error of the mean; 0 for a single number.
  double standard_error() const {
    const auto count = static_cast<double>(count_);
    return count_ > 1 ? std::sqrt(squares_ / (count - 1) / count) : 0.0;
  }

 private:
  std::int64_t count_ = 0;
  double mean_ = 0.0;
  double squares_ = 0.0;
};

void check(
    std::span<const std::int32_t> tokens, const PerplexityOptions& options, std::int64_t limit
) {
  // The last token of a window is only scored.
  const std::int64_t most = limit > 0 ? limit + 1 : std::numeric_limits<int>::max();
  require(
      tokens.size() >= 2,
      ErrorCode::kInvalidArgument,
      "a text of {} tokens, expected at least 2",
      tokens.size()
  );
  require(
      options.context >= 2 && options.context <= most,
      ErrorCode::kInvalidArgument,
      "context: got {}, expected from 2 to {} tokens",
      options.context,
      most
  );
  require(
      options.stride >= 0 && options.stride <= options.context,
      ErrorCode::kInvalidArgument,
      "stride: got {}, expected from 1 to the context of {} tokens",
      options.stride,
      options.context
  );
  require(
      options.batch > 0,
      ErrorCode::kInvalidArgument,
      "batch: got {}, expected at least 1",
      options.batch
  );
}

ScoreRequest request_of(
    const Window& window, std::span<const std::int32_t> tokens, const PerplexityOptions& options
) {
  const auto part = [&](std::size_t first, std::size_t last) {
    const auto some = tokens.subspan(first, last - first);
    return std::vector<std::int32_t>(some.begin(), some.end());
  };
  ScoreRequest request;
  request.prompt_tokens = part(window.begin, window.scored);
  request.tokens = part(window.scored, window.end);
  request.kv_bits = options.kv_bits;
  request.views = {options.view};
  return request;
}

void add_losses(const ScoreOutcome& outcome, Moments& losses) {
  if (const auto* error = std::get_if<Error>(&outcome)) {
    throw *error;
  }
  for (const auto& logprob : std::get<ScoreResult>(outcome).views.front().logprobs) {
    if (logprob) {
      losses.add(-*logprob);
    }
  }
}

}  // namespace

PerplexityResult measure_perplexity(
    Engine& engine, std::span<const std::int32_t> tokens, const PerplexityOptions& options
) {
  check(tokens, options, engine.facts().context_length);
  const auto context = static_cast<std::size_t>(options.context);
  const auto windows = cut_windows(
      tokens.size(),
      context,
      options.stride > 0 ? static_cast<std::size_t>(options.stride) : context
  );
  const auto total = static_cast<std::int64_t>(windows.size());
  Moments losses;
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t at = 0; at < windows.size();) {
    const std::size_t count =
        std::min(windows.size() - at, static_cast<std::size_t>(options.batch));
    std::vector<ScoreRequest> requests;
    requests.reserve(count);
    for (const Window& window : std::span(windows).subspan(at, count)) {
      requests.push_back(request_of(window, tokens, options));
    }
    for (const ScoreOutcome& outcome : engine.score(requests)) {
      add_losses(outcome, losses);
    }
    at += count;
    if (options.progress) {
      options.progress(static_cast<std::int64_t>(at), total);
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const double perplexity = std::exp(losses.mean());
  return {
      .perplexity = perplexity,
      .standard_error = perplexity * losses.standard_error(),
      .mean_loss = losses.mean(),
      .scored = losses.count(),
      .windows = total,
      .tokens_per_second =
          seconds.count() > 0 ? static_cast<double>(losses.count()) / seconds.count() : 0.0,
  };
}

}  // namespace saker::engine

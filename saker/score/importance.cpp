// SPDX-License-Identifier: Apache-2.0
#include "saker/score/importance.h"

#include "saker/base/error.h"
#include "saker/cache/sequence_cache.h"
#include "saker/models/token_ids.h"
#include "saker/nn/forward_context.h"
#include "saker/score/input_collector.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

namespace saker::score {
namespace {

// Tokens of the next pass. A model that sees later tokens needs its whole text in one.
std::size_t pass_tokens(
    const models::ModelInfo& info, std::size_t left, const ImportanceOptions& options
) {
  const int budget = options.before_pass ? options.before_pass() : options.chunk;
  return info.bidirectional ? left : std::min(left, static_cast<std::size_t>(std::max(budget, 1)));
}

void observe_pass(
    const models::Model& model,
    std::span<const std::int32_t> tokens,
    cache::SequenceCache& cache,
    const ImportanceOptions& options,
    InputCollector& collector
) {
  const int count = static_cast<int>(tokens.size());
  nn::ForwardContext context({{.cache = &cache, .row_count = count}});
  context.observe_inputs(collector);
  const mx::array hidden = model.forward(mx::array(tokens.data(), mx::Shape{count}), context);
  mx::eval(hidden);
  if (options.head) {
    // The observer takes the input; nobody evaluates the logits.
    model.unembed(hidden, nn::RowContext().observed_by(collector));
  }
}

}  // namespace

std::int64_t importance_chunks(
    const models::ModelInfo& info, std::int64_t tokens, const ImportanceOptions& options
) {
  const std::int64_t most =
      info.context_length > 0 ? info.context_length : std::numeric_limits<int>::max();
  require(
      options.chunk >= 1 && options.chunk <= most,
      ErrorCode::kInvalidArgument,
      "chunks of {} tokens, expected from 1 to {}, the model's context",
      options.chunk,
      most
  );
  require(
      options.chunks >= 0,
      ErrorCode::kInvalidArgument,
      "{} chunks, expected 0 or more",
      options.chunks
  );
  const std::int64_t full = tokens / options.chunk;
  require(
      full > 0,
      ErrorCode::kInvalidArgument,
      "the text has {} tokens, expected at least one chunk of {}",
      tokens,
      options.chunk
  );
  return options.chunks > 0 ? std::min<std::int64_t>(full, options.chunks) : full;
}

Importance measure_importance(
    const models::Model& model,
    std::span<const std::int32_t> tokens,
    const ImportanceOptions& options
) {
  const models::ModelInfo& info = model.info();
  const std::int64_t chunks = importance_chunks(info, std::ssize(tokens), options);
  models::check_token_ids(info, tokens);
  if (options.first_token) {
    models::check_token_ids(info, {&*options.first_token, 1});
  }
  if (options.head) {
    models::check_predicts_tokens(info);
  }
  InputCollector collector;
  const auto size = static_cast<std::size_t>(options.chunk);
  for (std::int64_t index = 0; index < chunks; ++index) {
    const auto part = tokens.subspan(static_cast<std::size_t>(index) * size, size);
    std::vector<std::int32_t> chunk(part.begin(), part.end());
    chunk.front() = options.first_token.value_or(chunk.front());
    cache::SequenceCache cache = model.make_cache({});
    for (std::size_t at = 0; at < size;) {
      const std::size_t count = pass_tokens(info, size - at, options);
      observe_pass(model, std::span(chunk).subspan(at, count), cache, options, collector);
      at += count;
    }
    if (options.progress) {
      options.progress(index + 1, chunks);
    }
  }
  return {.modules = collector.result(), .chunks = chunks};
}

}  // namespace saker::score

// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/processors.h"

#include "saker/sample/repeats.h"

#include <cstddef>
#include <limits>

namespace saker::sample {

namespace {

bool repetition_on(const SamplingOptions& options) {
  return options.repetition_penalty != 0.0 && options.repetition_penalty != 1.0;
}

void take_out(std::span<const std::int32_t> tokens, std::span<float> logits) {
  for (const std::int32_t id : tokens) {
    if (id >= 0 && static_cast<std::size_t>(id) < logits.size()) {
      logits[static_cast<std::size_t>(id)] = -std::numeric_limits<float>::infinity();
    }
  }
}

}  // namespace

bool Processors::needed(const SamplingOptions& options) {
  return !options.logit_bias.empty() || repetition_on(options) || options.presence_penalty != 0.0 ||
         options.frequency_penalty != 0.0 || options.dry_multiplier > 0.0 ||
         options.min_tokens > 0 || !options.suppress_tokens.empty();
}

void Processors::apply(
    const SamplingOptions& options,
    const NamedTokens& tokens,
    std::span<const std::int32_t> context,
    std::span<float> logits
) {
  penalise(options, context, logits);
  if (options.dry_multiplier > 0.0) {
    penalise_repeats(options, tokens.dry_breakers, context, logits);
  }
  if (context.size() < tokens.prompt_size + static_cast<std::size_t>(options.min_tokens)) {
    take_out(tokens.stop_tokens, logits);
  }
  take_out(options.suppress_tokens, logits);
}

void Processors::penalise(
    const SamplingOptions& options, std::span<const std::int32_t> context, std::span<float> logits
) {
  for (const auto& [id, bias] : options.logit_bias) {
    logits[static_cast<std::size_t>(id)] += static_cast<float>(bias);
  }
  if (repetition_on(options)) {
    const auto penalty = static_cast<float>(options.repetition_penalty);
    for (const std::size_t id :
         counts(context, options.repetition_context_size, logits.size()).ids()) {
      logits[id] = logits[id] < 0.0F ? logits[id] * penalty : logits[id] / penalty;
    }
  }
  if (options.presence_penalty != 0.0) {
    const auto penalty = static_cast<float>(options.presence_penalty);
    for (const std::size_t id :
         counts(context, options.presence_context_size, logits.size()).ids()) {
      logits[id] -= penalty;
    }
  }
  if (options.frequency_penalty != 0.0) {
    const auto penalty = static_cast<float>(options.frequency_penalty);
    const TokenCounts& seen = counts(context, options.frequency_context_size, logits.size());
    for (const std::size_t id : seen.ids()) {
      logits[id] -= penalty * static_cast<float>(seen.count(id));
    }
  }
}

const TokenCounts& Processors::counts(
    std::span<const std::int32_t> context, int size, std::size_t vocab_size
) {
  TokenCounts& result = counts_[size];
  result.follow(context, static_cast<std::size_t>(size), vocab_size);
  return result;
}

}  // namespace saker::sample

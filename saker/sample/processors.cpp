// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/processors.h"

#include <algorithm>
#include <cstddef>

namespace saker::sample {

namespace {

bool repetition_on(const SamplingOptions& options) {
  return options.repetition_penalty != 0.0 && options.repetition_penalty != 1.0;
}

}  // namespace

bool Processors::needed(const SamplingOptions& options) {
  return !options.logit_bias.empty() || repetition_on(options) || options.presence_penalty != 0.0 ||
         options.frequency_penalty != 0.0;
}

void Processors::apply(
    const SamplingOptions& options, std::span<const std::int32_t> context, std::span<float> logits
) {
  for (const auto& [id, bias] : options.logit_bias) {
    logits[static_cast<std::size_t>(id)] += static_cast<float>(bias);
  }
  if (repetition_on(options)) {
    const auto penalty = static_cast<float>(options.repetition_penalty);
    count(context, options.repetition_context_size, logits.size());
    for (const std::size_t id : seen_) {
      logits[id] = logits[id] < 0.0F ? logits[id] * penalty : logits[id] / penalty;
    }
    forget();
  }
  if (options.presence_penalty != 0.0) {
    const auto penalty = static_cast<float>(options.presence_penalty);
    count(context, options.presence_context_size, logits.size());
    for (const std::size_t id : seen_) {
      logits[id] -= penalty;
    }
    forget();
  }
  if (options.frequency_penalty != 0.0) {
    const auto penalty = static_cast<float>(options.frequency_penalty);
    count(context, options.frequency_context_size, logits.size());
    for (const std::size_t id : seen_) {
      logits[id] -= penalty * static_cast<float>(counts_[id]);
    }
    forget();
  }
}

void Processors::count(std::span<const std::int32_t> context, int size, std::size_t vocab_size) {
  counts_.resize(std::max(counts_.size(), vocab_size));
  if (size > 0 && static_cast<std::size_t>(size) < context.size()) {
    context = context.last(static_cast<std::size_t>(size));
  }
  for (const std::int32_t token : context) {
    const auto id = static_cast<std::size_t>(token);
    if (id >= vocab_size) {
      continue;
    }
    if (counts_[id]++ == 0) {
      seen_.push_back(id);
    }
  }
}

void Processors::forget() {
  for (const std::size_t id : seen_) {
    counts_[id] = 0;
  }
  seen_.clear();
}

}  // namespace saker::sample

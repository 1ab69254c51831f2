// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/token_counts.h"

#include <algorithm>

namespace saker::sample {

void TokenCounts::follow(
    std::span<const std::int32_t> context, std::size_t size, std::size_t vocab_size
) {
  const auto window = size > 0 && size < context.size() ? context.last(size) : context;
  // Tokens that left the former window, if the context only grew.
  const std::size_t grown = context.size() - std::min(context.size(), context_size_);
  const std::size_t both = window_.size() + grown;
  const std::size_t gone = both - std::min(both, window.size());
  const bool follows =
      counts_.size() == vocab_size && context.size() >= context_size_ && gone <= window_.size() &&
      both - gone == window.size() &&
      std::equal(
          window_.begin() + static_cast<std::ptrdiff_t>(gone), window_.end(), window.begin()
      );
  context_size_ = context.size();
  if (!follows) {
    restart(vocab_size);
    std::ranges::for_each(window, [this](std::int32_t token) { add(token); });
    window_.assign(window.begin(), window.end());
    return;
  }
  const auto first_kept = window_.begin() + static_cast<std::ptrdiff_t>(gone);
  std::for_each(window_.begin(), first_kept, [this](std::int32_t token) { remove(token); });
  window_.erase(window_.begin(), first_kept);
  const auto fresh = window.last(grown);
  std::ranges::for_each(fresh, [this](std::int32_t token) { add(token); });
  window_.insert(window_.end(), fresh.begin(), fresh.end());
}

void TokenCounts::add(std::int32_t token) {
  const auto id = static_cast<std::size_t>(token);
  if (id < counts_.size() && counts_[id]++ == 0) {
    ids_.push_back(id);
  }
}

void TokenCounts::remove(std::int32_t token) {
  const auto id = static_cast<std::size_t>(token);
  if (id < counts_.size() && --counts_[id] == 0) {
    std::erase(ids_, id);
  }
}

void TokenCounts::restart(std::size_t vocab_size) {
  for (const std::size_t id : ids_) {
    counts_[id] = 0;
  }
  ids_.clear();
  counts_.resize(vocab_size);
}

}  // namespace saker::sample

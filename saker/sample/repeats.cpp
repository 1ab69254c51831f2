// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/repeats.h"

#include "saker/base/portable_math.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <vector>

namespace saker::sample {

namespace {

using Tokens = std::span<const std::int32_t>;

// Number of tokens since the last breaker.
std::size_t unbroken(Tokens context, Tokens breakers) {
  const auto is_breaker = [breakers](std::int32_t id) {
    return std::ranges::binary_search(breakers, id);
  };
  const auto last = std::find_if(context.rbegin(), context.rend(), is_breaker);
  return static_cast<std::size_t>(last - context.rbegin());
}

// At i: the length of the common suffix of the context and the context without its last i tokens
// (the Z function of the reversed context; Gusfield 1997, §1.4).
std::vector<std::size_t> lengths_of_repeats(Tokens context) {
  const std::size_t size = context.size();
  const auto from_end = [&](std::size_t i) { return context[size - 1 - i]; };
  std::vector<std::size_t> lengths(size, 0);
  std::size_t first = 0;  // The match that reaches furthest: [first, end).
  std::size_t end = 0;
  for (std::size_t i = 1; i < size; ++i) {
    std::size_t length = i < end ? std::min(lengths[i - first], end - i) : 0;
    while (i + length < size && from_end(i + length) == from_end(length)) {
      ++length;
    }
    lengths[i] = length;
    if (i + length > end) {
      first = i;
      end = i + length;
    }
  }
  return lengths;
}

}  // namespace

void penalise_repeats(
    const SamplingOptions& options, Tokens breakers, Tokens context, std::span<float> logits
) {
  const auto size = static_cast<std::size_t>(options.dry_context_size);
  if (size > 0 && size < context.size()) {
    context = context.last(size);
  }
  const auto allowed = static_cast<std::size_t>(options.dry_allowed_length);
  const std::size_t limit = unbroken(context, breakers);
  if (limit < std::max<std::size_t>(allowed, 1)) {
    return;
  }
  const std::vector<std::size_t> lengths = lengths_of_repeats(context);
  std::unordered_map<std::int32_t, std::size_t> longest;  // By the token that came after it.
  for (std::size_t i = 1; i < context.size(); ++i) {
    const std::size_t length = std::min(lengths[i], limit);
    if (length >= std::max<std::size_t>(allowed, 1)) {
      std::size_t& known = longest[context[context.size() - i]];
      known = std::max(known, length);
    }
  }
  const double log_base = portable_log(options.dry_base);
  for (const auto& [id, length] : longest) {
    const bool in_row = id >= 0 && static_cast<std::size_t>(id) < logits.size();
    if (in_row && !std::ranges::binary_search(breakers, id)) {
      // Stays finite for any length.
      const double growth = std::min(static_cast<double>(length - allowed) * log_base, 80.0);
      logits[static_cast<std::size_t>(id)] -=
          static_cast<float>(options.dry_multiplier * portable_exp(growth));
    }
  }
}

}  // namespace saker::sample

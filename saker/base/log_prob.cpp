// SPDX-License-Identifier: Apache-2.0
#include "saker/base/log_prob.h"

#include "saker/base/portable_math.h"
#include "saker/base/row_loops.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace saker {

namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();
constexpr std::size_t kBlock = 256;

struct Scored {
  float logit;
  std::int32_t id;
};

bool better(const Scored& a, const Scored& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

}  // namespace

float max_logit(std::span<const float> logits) {
  return row_loops().max(logits.data(), logits.size());
}

std::int32_t best_token(std::span<const float> logits) {
  float best = kNone;
  std::size_t best_block = 0;
  for (std::size_t first = 0; first < logits.size(); first += kBlock) {
    const std::size_t size = std::min(kBlock, logits.size() - first);
    if (const float max = max_logit(logits.subspan(first, size)); max > best) {
      best = max;
      best_block = first;
    }
  }
  const auto rest = logits.subspan(best_block);
  const auto found = std::find(rest.begin(), rest.end(), best);
  return found == rest.end() ? 0 : static_cast<std::int32_t>(best_block + (found - rest.begin()));
}

double log_sum_exp(std::span<const float> logits) {
  const double max = max_logit(logits);
  if (std::isinf(max)) {
    return max;
  }
  const double sum = row_loops().exp_sum(logits.data(), logits.size(), max);
  return max + portable_log(sum);
}

double log_prob(std::span<const float> logits, std::int32_t id, double log_sum) {
  const float logit = logits[static_cast<std::size_t>(id)];
  return static_cast<double>(std::isnan(logit) ? kNone : logit) - log_sum;
}

std::vector<std::pair<std::int32_t, double>> top_tokens(
    std::span<const float> logits, int count, double log_sum
) {
  const std::size_t wanted = std::min(logits.size(), static_cast<std::size_t>(std::max(count, 0)));
  // A heap whose front is the worst of the best ids so far.
  std::vector<Scored> heap;
  heap.reserve(wanted);
  const auto offer = [&](std::size_t i) {
    const float logit = std::isnan(logits[i]) ? kNone : logits[i];
    if (heap.size() == wanted && logit <= heap.front().logit) {
      return;
    }
    if (heap.size() == wanted) {
      std::pop_heap(heap.begin(), heap.end(), better);
      heap.pop_back();
    }
    heap.push_back({logit, static_cast<std::int32_t>(i)});
    std::push_heap(heap.begin(), heap.end(), better);
  };
  for (std::size_t first = 0; first < logits.size() && wanted > 0; first += kBlock) {
    const std::size_t size = std::min(kBlock, logits.size() - first);
    // Most blocks hold no id that could enter.
    if (heap.size() == wanted && max_logit(logits.subspan(first, size)) <= heap.front().logit) {
      continue;
    }
    for (std::size_t i = first; i < first + size; ++i) {
      offer(i);
    }
  }
  std::sort(heap.begin(), heap.end(), better);
  std::vector<std::pair<std::int32_t, double>> result;
  result.reserve(heap.size());
  for (const Scored& token : heap) {
    result.emplace_back(token.id, static_cast<double>(token.logit) - log_sum);
  }
  return result;
}

}  // namespace saker

// SPDX-License-Identifier: Apache-2.0
#include "saker/base/log_prob.h"

#include "saker/base/exp_rows.h"
#include "saker/base/portable_math.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace saker {

namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();
// Enough independent lanes to fill vectors.
constexpr std::size_t kLanes = 16;
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
  std::array<float, kLanes> best;
  best.fill(kNone);
  const std::size_t whole = logits.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float x = logits[i + lane];
      best[lane] = x > best[lane] ? x : best[lane];
    }
  }
  for (std::size_t i = whole; i < logits.size(); ++i) {
    best[0] = logits[i] > best[0] ? logits[i] : best[0];
  }
  return *std::max_element(best.begin(), best.end());
}

std::int32_t best_token(std::span<const float> logits) {
  const auto found = std::find(logits.begin(), logits.end(), max_logit(logits));
  return found == logits.end() ? 0 : static_cast<std::int32_t>(found - logits.begin());
}

double log_sum_exp(std::span<const float> logits) {
  const double max = max_logit(logits);
  if (std::isinf(max)) {
    return max;
  }
  const double sum = exp_rows().sum(logits.data(), logits.size(), max);
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
  // A heap whose front is the worst of the best so far.
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
    // Most blocks hold nothing that could enter.
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

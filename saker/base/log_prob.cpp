// SPDX-License-Identifier: Apache-2.0
#include "saker/base/log_prob.h"

#include "saker/base/portable_math.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace saker {

namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();
// Lanes of the fixed order of additions: enough to keep the adders of any machine busy.
constexpr std::size_t kLanes = 16;

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
  std::array<double, kLanes> sums{};
  const std::size_t whole = logits.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sums[lane] += portable_exp(static_cast<double>(logits[i + lane]) - max);
    }
  }
  double sum = 0.0;
  for (const double part : sums) {
    sum += part;
  }
  for (std::size_t i = whole; i < logits.size(); ++i) {
    sum += portable_exp(static_cast<double>(logits[i]) - max);
  }
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
  for (std::size_t i = 0; i < logits.size() && wanted > 0; ++i) {
    const float logit = std::isnan(logits[i]) ? kNone : logits[i];
    if (heap.size() == wanted && logit <= heap.front().logit) {
      continue;
    }
    if (heap.size() == wanted) {
      std::pop_heap(heap.begin(), heap.end(), better);
      heap.pop_back();
    }
    heap.push_back({logit, static_cast<std::int32_t>(i)});
    std::push_heap(heap.begin(), heap.end(), better);
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

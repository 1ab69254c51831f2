// SPDX-License-Identifier: Apache-2.0
#include "saker/base/error.h"
#include "saker/base/portable_math.h"
#include "saker/base/row_loops.h"
#include "saker/kernels/ops/experts/expert_rows.h"
#include "saker/kernels/ops/experts/router_options.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

namespace saker::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// softcap * tanh(x / softcap)
float capped(float x, double cap) {
  constexpr double kSaturated = 20.0;  // tanh is 1 there.
  if (std::isnan(x)) {
    return x;
  }
  const double ratio = std::clamp(x / cap, -kSaturated, kSaturated);
  return static_cast<float>(cap * (1.0 - 2.0 / (portable_exp(2.0 * ratio) + 1.0)));
}

double sigmoid(double x) {
  const double small = portable_exp(-std::abs(x));
  return (x >= 0.0 ? 1.0 : small) / (1.0 + small);
}

double softplus(double x) {
  constexpr double kTiny = 1e-6;  // Below it, log(1 + u) would lose digits of u.
  const double small = portable_exp(-std::abs(x));
  const double log_of_sum = small < kTiny ? small - small * small / 2 : portable_log(1.0 + small);
  return std::max(x, 0.0) + log_of_sum;
}

// A row's scores, which softmax divides by a sum.
class RowScores {
 public:
  RowScores(std::span<const float> logits, RouterScore score)
      : logits_(logits),
        score_(score),
        has_nan_(std::ranges::any_of(logits, [](float value) { return std::isnan(value); })) {
    for (const float logit : logits) {
      largest_ = std::max(largest_, static_cast<double>(std::isnan(logit) ? -kInfinity : logit));
    }
    if (score == RouterScore::kSoftmax && is_sound()) {
      sum_ = row_loops().exp_sum(logits.data(), logits.size(), largest_);
    }
  }

  // Restricts the softmax to these experts.
  void take_softmax_of(std::span<const int> ids) {
    largest_ = -kInfinity;
    for (const int id : ids) {
      largest_ = std::max(largest_, logit(id));
    }
    sum_ = 0.0;
    for (const int id : ids) {
      sum_ += portable_exp(logit(id) - largest_);
    }
  }

  bool is_sound() const {
    const bool by_softmax =
        score_ == RouterScore::kSoftmax || score_ == RouterScore::kSoftmaxOfChosen;
    return !has_nan_ && (!by_softmax || std::isfinite(largest_));
  }

  double operator()(int id) const {
    switch (score_) {
      case RouterScore::kSigmoid:
        return sigmoid(logit(id));
      case RouterScore::kSqrtSoftplus:
        return std::sqrt(softplus(logit(id)));
      case RouterScore::kSoftmax:
      case RouterScore::kSoftmaxOfChosen:
        break;
    }
    return portable_exp(logit(id) - largest_) / sum_;
  }

 private:
  double logit(int id) const { return logits_[static_cast<std::size_t>(id)]; }

  std::span<const float> logits_;
  RouterScore score_;
  bool has_nan_;
  double largest_ = -kInfinity;
  double sum_ = 1.0;
};

// Indices of the largest keys, best first; the lower index of equal ones.
void take_largest(std::span<const float> keys, std::span<int> ids) {
  thread_local std::vector<int> order;
  order.resize(keys.size());
  std::iota(order.begin(), order.end(), 0);
  const auto middle = order.begin() + static_cast<std::ptrdiff_t>(ids.size());
  std::partial_sort(order.begin(), middle, order.end(), [&](int a, int b) {
    const float left = keys[static_cast<std::size_t>(a)];
    const float right = keys[static_cast<std::size_t>(b)];
    return left > right || (left == right && a < b);
  });
  std::copy(order.begin(), middle, ids.begin());
}

float group_key(std::span<const float> keys, GroupScore score) {
  float first = -kInfinity;
  float second = -kInfinity;
  for (const float key : keys) {
    second = std::max(second, std::min(first, key));
    first = std::max(first, key);
  }
  return score == GroupScore::kLargestTwo && keys.size() > 1 ? first + second : first;
}

// Keys of groups that are not kept become -inf.
void keep_groups(const RouterOptions& options, std::span<float> keys) {
  const std::size_t size = keys.size() / static_cast<std::size_t>(options.groups);
  std::vector<float> of_groups;
  for (std::size_t first = 0; first < keys.size(); first += size) {
    of_groups.push_back(group_key(keys.subspan(first, size), options.group_score));
  }
  std::vector<int> kept(static_cast<std::size_t>(options.kept_groups));
  take_largest(of_groups, kept);
  for (std::size_t group = 0; group < of_groups.size(); ++group) {
    if (std::ranges::find(kept, static_cast<int>(group)) == kept.end()) {
      std::ranges::fill(keys.subspan(group * size, size), -kInfinity);
    }
  }
}

// Fills the keys that the choice compares.
void fill_keys(
    std::span<const float> logits,
    const RowScores& scores,
    const RowRouter& router,
    std::span<float> keys
) {
  const bool plain = router.compares_logits;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const float score = plain ? logits[i] : static_cast<float>(scores(static_cast<int>(i)));
    const float key = router.bias != nullptr ? score + router.bias[i] : score;
    keys[i] = std::isnan(key) ? -kInfinity : key;
  }
  if (router.options.groups > 1) {
    keep_groups(router.options, keys);
  }
}

bool fits(const std::optional<mx::array>& tensor, int experts) {
  return !tensor || (tensor->dtype() == mx::float32 && tensor->shape() == mx::Shape{experts});
}

}  // namespace

bool compares_logits(const RouterOptions& options, const RouterTensors& tensors) {
  const bool sums = options.groups > 1 && options.group_score == GroupScore::kLargestTwo;
  return options.score == RouterScore::kSoftmaxOfChosen || (!tensors.bias && !sums);
}

void check_router(const RouterOptions& options, const RouterTensors& tensors, int experts) {
  require(
      options.groups > 0 && experts % options.groups == 0 && options.kept_groups > 0 &&
          options.kept_groups <= options.groups && options.chosen > 0 &&
          options.chosen <= experts / options.groups * options.kept_groups &&
          fits(tensors.bias, experts) && fits(tensors.scales, experts),
      ErrorCode::kInternal,
      "[experts] {} of {} experts in {} of {} groups do not fit, or the router's tensors",
      options.chosen,
      experts,
      options.kept_groups,
      options.groups
  );
}

RowRouter::RowRouter(const RouterOptions& rules, const RouterTensors& tensors)
    : options(rules),
      bias(tensors.bias ? tensors.bias->data<float>() : nullptr),
      scales(tensors.scales ? tensors.scales->data<float>() : nullptr),
      compares_logits(kernels::compares_logits(rules, tensors)) {}

void choose_row(
    std::span<const float> logits, const RowRouter& router, std::span<int> ids, float* weights
) {
  const RouterOptions& options = router.options;
  thread_local std::vector<float> capped_row;
  if (options.softcap > 0.0F) {
    capped_row.resize(logits.size());
    std::ranges::transform(logits, capped_row.begin(), [&](float logit) {
      return capped(logit, options.softcap);
    });
    logits = capped_row;
  }
  RowScores scores(logits, options.score);
  thread_local std::vector<float> keys;
  keys.resize(logits.size());
  fill_keys(logits, scores, router, keys);
  take_largest(keys, ids);
  if (!scores.is_sound()) {
    std::fill_n(weights, ids.size(), std::numeric_limits<float>::quiet_NaN());
    return;
  }
  if (options.score == RouterScore::kSoftmaxOfChosen) {
    scores.take_softmax_of(ids);
  }
  double divisor = 1.0;
  if (options.normalized) {
    divisor = options.epsilon;
    for (const int id : ids) {
      divisor += scores(id);
    }
  }
  for (std::size_t rank = 0; rank < ids.size(); ++rank) {
    double weight = scores(ids[rank]) / divisor * options.scale;
    if (router.scales != nullptr) {
      weight *= router.scales[ids[rank]];
    }
    weights[rank] = static_cast<float>(weight);
  }
}

}  // namespace saker::kernels

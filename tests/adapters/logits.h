// SPDX-License-Identifier: Apache-2.0
#pragma once

// Logits of sequences with adapters, and how far they are apart.

#include "saker/models/model.h"
#include "saker/nn/forward_context.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace saker::testing {

using Logits = std::vector<float>;

// One sequence of a pass.
struct View {
  explicit View(const models::Model& model, nn::AdapterUse use = {})
      : adapter(std::move(use)), cache(model.make_cache({})) {}

  nn::AdapterUse adapter;
  cache::SequenceCache cache;
  Logits logits;  // [T, V], of all passes.
};

// The same ids for every view in one pass.
inline void run_pass(
    const models::Model& model, const std::vector<View*>& views, std::span<const int> ids
) {
  std::vector<nn::Span> spans;
  std::vector<int> rows;
  for (View* view : views) {
    spans.push_back({&view->cache, static_cast<int>(ids.size()), view->adapter});
    rows.insert(rows.end(), ids.begin(), ids.end());
  }
  nn::ForwardContext context(spans);
  for (View* view : views) {
    view->cache.begin();
  }
  const mx::array tokens(rows.data(), {static_cast<int>(rows.size())}, mx::int32);
  const auto hidden = model.forward(tokens, context);
  auto logits = mx::contiguous(model.unembed(hidden, context.adapters()));
  mx::eval(logits);
  const float* from = logits.data<float>();
  const auto count = ids.size() * static_cast<std::size_t>(model.info().vocab_size);
  for (View* view : views) {
    view->cache.commit(static_cast<std::int64_t>(ids.size()));
    view->logits.insert(view->logits.end(), from, from + count);
    from += count;
  }
}

inline Logits run_alone(
    const models::Model& model, const nn::AdapterUse& use, const std::vector<int>& ids
) {
  View view(model, use);
  run_pass(model, {&view}, ids);
  return view.logits;
}

inline bool same_bits(const Logits& a, const Logits& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline std::vector<double> log_softmax(std::span<const float> row) {
  double sum = 0.0;
  for (const float logit : row) {
    sum += std::exp(static_cast<double>(logit) - row[0]);
  }
  std::vector<double> result;
  for (const float logit : row) {
    result.push_back(static_cast<double>(logit) - row[0] - std::log(sum));
  }
  return result;
}

// Mean difference of log-probabilities over all tokens and rows.
inline double mean_difference(const Logits& a, const Logits& b, std::size_t vocab) {
  double total = 0.0;
  for (std::size_t first = 0; first < a.size(); first += vocab) {
    const auto one = log_softmax(std::span(a).subspan(first, vocab));
    const auto other = log_softmax(std::span(b).subspan(first, vocab));
    for (std::size_t i = 0; i < vocab; ++i) {
      total += std::abs(one[i] - other[i]);
    }
  }
  return total / static_cast<double>(a.size());
}

}  // namespace saker::testing

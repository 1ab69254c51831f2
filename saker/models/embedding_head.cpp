// SPDX-License-Identifier: Apache-2.0
#include "saker/models/embedding_head.h"

#include "saker/base/error.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <utility>

namespace saker::models {
namespace {

// Outputs of the linear layer in this scope. REQUIRES: it has a weight.
int outputs_of(const nn::Weights& scope) {
  const std::vector<std::int64_t> shape = scope.find("weight").value().shape;
  require(
      shape.size() == 2 && shape[0] > 0 && shape[0] <= std::numeric_limits<int>::max(),
      ErrorCode::kCorruptData,
      "[{}] tensor has {} dimensions, expected 2 with at least one row",
      scope.path("weight"),
      shape.size()
  );
  return static_cast<int>(shape[0]);
}

}  // namespace

EmbeddingHead::EmbeddingHead(EmbeddingConfig config, const nn::Weights& weights, int hidden)
    : config_(std::move(config)), size_(hidden) {
  for (int i = 0; (weights / "dense" / fmt::to_string(i)).has("weight"); ++i) {
    const nn::Weights scope = weights / "dense" / fmt::to_string(i);
    const int outputs = outputs_of(scope);
    dense_.emplace_back(scope, size_, outputs);
    size_ = outputs;
  }
  config_.dense.resize(dense_.size(), DenseActivation::kIdentity);
  if (const nn::Weights scope = weights / "score"; scope.has("weight")) {
    class_count_ = outputs_of(scope);
    classifier_.emplace(scope, hidden, class_count_);
  }
}

mx::array EmbeddingHead::vectors(const mx::array& pooled) const {
  mx::array rows = mx::astype(pooled, mx::float32);
  for (std::size_t i = 0; i < dense_.size(); ++i) {
    rows = mx::astype(dense_[i](rows, {}), mx::float32);
    if (config_.dense[i] == DenseActivation::kTanh) {
      rows = mx::tanh(rows);
    }
  }
  return rows;
}

mx::array EmbeddingHead::scores(const mx::array& pooled) const {
  return mx::astype((*classifier_)(mx::astype(pooled, mx::float32), {}), mx::float32);
}

}  // namespace saker::models

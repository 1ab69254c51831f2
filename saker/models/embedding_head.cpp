// SPDX-License-Identifier: Apache-2.0
#include "saker/models/embedding_head.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

namespace saker::models {
EmbeddingHead::EmbeddingHead(
    EmbeddingConfig config,
    const nn::Weights& weights,
    int hidden,
    std::optional<Classifier> classifier
)
    : config_(std::move(config)), classifier_(std::move(classifier)), size_(hidden) {
  for (int i = 0; (weights / "dense" / fmt::to_string(i)).has("weight"); ++i) {
    const nn::Weights scope = weights / "dense" / fmt::to_string(i);
    const int outputs = outputs_of(scope);
    dense_.emplace_back(scope, size_, outputs);
    size_ = outputs;
  }
  config_.dense.resize(dense_.size(), DenseActivation::kIdentity);
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
  return (*classifier_)(pooled);
}

}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
#pragma once

// The layers behind a model that make a text's vector of its pooled row: dense layers (tensors
// "dense.0.weight", ...), and a classifier. Both are optional. A row's result does
// not depend on the rows beside it. Immutable. REQUIRES: called on the engine's thread.

#include "saker/kernels/mx.h"
#include "saker/models/classifier.h"
#include "saker/models/embedding_config.h"
#include "saker/nn/linear.h"
#include "saker/nn/weights/weights.h"

#include <optional>
#include <vector>

namespace saker::models {

class EmbeddingHead {
 public:
  // Takes the tensors of `weights`. Throws kCorruptData for those of another shape.
  EmbeddingHead(
      EmbeddingConfig config,
      const nn::Weights& weights,
      int hidden,
      std::optional<Classifier> classifier
  );

  const EmbeddingConfig& config() const { return config_; }

  // Elements of a vector.
  int size() const { return size_; }

  // Outputs of the classifier; 0: there is none.
  int class_count() const { return classifier_ ? classifier_->class_count() : 0; }

  // The rows that the classifier reads. REQUIRES: there is one.
  Pooling class_pooling() const { return classifier_->pooling(); }

  // Pooled rows [n, hidden] -> vectors [n, size] float32, not normalized.
  mx::array vectors(const mx::array& pooled) const;
  // Pooled rows [n, hidden] -> scores [n, class_count] float32. REQUIRES: there is a classifier.
  mx::array scores(const mx::array& pooled) const;

 private:
  EmbeddingConfig config_;
  std::vector<nn::Linear> dense_;
  std::optional<Classifier> classifier_;
  int size_;
};

}  // namespace saker::models

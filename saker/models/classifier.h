// SPDX-License-Identifier: Apache-2.0
#pragma once

// The layers that make scores of a text's pooled row: a linear layer, before it for some models a
// dense layer, its activation and a norm. A row's result does not depend on the rows beside it.
// Immutable. REQUIRES: called on the engine's thread.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/activation.h"
#include "saker/models/pooling.h"
#include "saker/nn/linear.h"
#include "saker/nn/norm.h"
#include "saker/nn/weights/weights.h"

#include <optional>
#include <string_view>

namespace saker::models {

// An architecture's classifier, by the names of its layers.
struct ClassifierLayout {
  Pooling pooling = Pooling::kLast;
  std::string_view dense = {};                                   // Empty: there is none.
  std::optional<kernels::Activation> activation = std::nullopt;  // After `dense`; none: tanh.
  std::string_view norm = {};                                    // After it; empty: there is none.
  float norm_eps = 1e-5F;
  std::string_view output = "score";
};

class Classifier {
 public:
  // None without the tensors. `body` is the scope of the model's layers; parts may lie there.
  // Throws kCorruptData for tensors of another shape.
  static std::optional<Classifier> find(
      const ClassifierLayout& layout,
      const nn::Weights& weights,
      const nn::Weights& body,
      int hidden
  );

  Pooling pooling() const { return pooling_; }

  int class_count() const { return class_count_; }

  // Pooled rows [n, hidden] -> scores [n, class_count] float32.
  mx::array operator()(const mx::array& pooled) const;

 private:
  Classifier(nn::Linear output, int class_count)
      : output_(std::move(output)), class_count_(class_count) {}

  Pooling pooling_ = Pooling::kLast;
  std::optional<nn::Linear> dense_;
  std::optional<kernels::Activation> activation_;
  std::optional<nn::Norm> norm_;
  nn::Linear output_;
  int class_count_;
};

// Outputs of the linear layer in this scope. REQUIRES: it has a weight. Throws kCorruptData for a
// weight that is no matrix.
int outputs_of(const nn::Weights& scope);

}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
#include "saker/models/classifier.h"

#include "saker/base/error.h"

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace saker::models {

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

std::optional<Classifier> Classifier::find(
    const ClassifierLayout& layout, const nn::Weights& weights, const nn::Weights& body, int hidden
) {
  const auto scope_of = [&](std::string_view name) {
    return (body / name).has("weight") ? body / name : weights / name;
  };
  const nn::Weights output = scope_of(layout.output);
  const bool has_dense = layout.dense.empty() || scope_of(layout.dense).has("weight");
  if (!output.has("weight") || !has_dense) {
    return std::nullopt;
  }
  const int classes = outputs_of(output);
  Classifier result(nn::Linear(output, hidden, classes), classes);
  result.pooling_ = layout.pooling;
  if (!layout.dense.empty()) {
    result.dense_.emplace(scope_of(layout.dense), hidden, hidden);
    result.activation_ = layout.activation;
  }
  if (!layout.norm.empty()) {
    result.norm_.emplace(
        scope_of(layout.norm),
        hidden,
        nn::NormOptions{.kind = kernels::NormKind::kLayer, .eps = layout.norm_eps}
    );
  }
  return result;
}

mx::array Classifier::operator()(const mx::array& pooled) const {
  mx::array rows = mx::astype(pooled, mx::float32);
  if (dense_) {
    rows = mx::astype((*dense_)(rows, {}), mx::float32);
    rows = activation_ ? kernels::activation(rows, *activation_) : mx::tanh(rows);
  }
  if (norm_) {
    rows = (*norm_)(rows, {});
  }
  return mx::astype(output_(rows, {}), mx::float32);
}

}  // namespace saker::models

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tensors in place of those that are made from another program's file, so that a model's can be
// named, stacked and planned before any of their bytes are there; and the way back to who makes
// them.

#include "saker/base/tensor.h"
#include "saker/load/importers/lazy_tensor.h"
#include "saker/load/safetensors.h"

#include <cstddef>
#include <map>
#include <optional>

namespace saker::load::importers {

class PlaceholderTensors {
 public:
  // REQUIRES: `model` outlives the object and what it gives.
  explicit PlaceholderTensors(const ImportedModel& model);

  // All tensors of the model: the file's own where nothing is made, else without bytes: `data`
  // must not be read.
  const TensorMap& tensors() const { return tensors_; }

  struct Source {
    const LazyTensor* tensor = nullptr;
    std::size_t output = 0;
  };

  // Who makes it; none for tensors with bytes of their own.
  std::optional<Source> find(const Tensor& tensor) const;

 private:
  TensorMap tensors_;
  std::map<const std::byte*, Source> sources_;  // By `data`.
};

}  // namespace saker::load::importers

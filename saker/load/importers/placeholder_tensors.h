// SPDX-License-Identifier: Apache-2.0
#pragma once

// Placeholders for tensors that will be converted from another program's file. A model's tensors
// can be named, stacked and planned before any bytes exist; `find` leads back to the lazy tensor.

#include "saker/base/tensor.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/importers/lazy_tensor.h"

#include <cstddef>
#include <map>
#include <optional>

namespace saker::load::importers {

class PlaceholderTensors {
 public:
  // REQUIRES: `model` outlives the object and its results.
  explicit PlaceholderTensors(const ImportedModel& model);

  // All tensors of the model: the file's own if nothing is converted, else placeholders without
  // bytes, whose `data` must not be read.
  const TensorMap& tensors() const { return tensors_; }

  struct Source {
    const LazyTensor* tensor = nullptr;
    std::size_t output = 0;
  };

  // The lazy tensor behind a placeholder; empty for tensors with bytes of their own.
  std::optional<Source> find(const Tensor& tensor) const;

 private:
  TensorMap tensors_;
  std::map<const std::byte*, Source> sources_;  // By `data`.
};

}  // namespace saker::load::importers

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes lazy tensors one module at a time, so that memory never holds a second copy of a model.

#include "saker/base/tensor.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/importers/lazy_tensor.h"

#include <cstddef>
#include <map>
#include <string>

namespace saker::load::importers {

// Not thread-safe.
class TensorMaker {
 public:
  explicit TensorMaker(ImportedModel model);

  // All tensors of the model; converted ones have no bytes.
  TensorMap tensors() const;

  // The tensor of this name, made on all threads. A module's other tensors are made with its first
  // one and kept until they are asked for. REQUIRES: it is one of tensors(), without bytes.
  Tensor make(const std::string& name);

 private:
  ImportedModel model_;
  std::map<std::string, std::size_t> sources_;  // The model's tensor with this output.
  TensorMap made_;
};

}  // namespace saker::load::importers

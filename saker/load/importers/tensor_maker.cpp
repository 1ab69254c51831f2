// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/tensor_maker.h"

#include <utility>

namespace saker::load::importers {

TensorMaker::TensorMaker(ImportedModel model) : model_(std::move(model)) {
  for (std::size_t i = 0; i < model_.tensors.size(); ++i) {
    for (const PlannedTensor& output : model_.tensors[i].outputs) {
      sources_.insert_or_assign(output.name, i);
    }
  }
}

TensorMap TensorMaker::tensors() const {
  TensorMap tensors;
  for (const LazyTensor& tensor : model_.tensors) {
    for (const PlannedTensor& output : tensor.outputs) {
      Tensor header{.dtype = output.dtype, .shape = output.shape, .data = nullptr, .release = {}};
      tensors.insert_or_assign(output.name, tensor.same ? *tensor.same : std::move(header));
    }
  }
  return tensors;
}

Tensor TensorMaker::make(const std::string& name) {
  if (auto kept = made_.extract(name)) {
    return std::move(kept.mapped());
  }
  ImportedModel module;
  module.tensors.push_back(model_.tensors[sources_.at(name)]);
  made_.merge(make_tensors(module));
  return std::move(made_.extract(name).mapped());
}

}  // namespace saker::load::importers

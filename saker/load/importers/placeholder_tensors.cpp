// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/placeholder_tensors.h"

#include <memory>

namespace saker::load::importers {

PlaceholderTensors::PlaceholderTensors(const ImportedModel& model) {
  for (const LazyTensor& tensor : model.tensors) {
    if (tensor.same) {
      tensors_.insert_or_assign(tensor.outputs.front().name, *tensor.same);
      continue;
    }
    for (std::size_t i = 0; i < tensor.outputs.size(); ++i) {
      const PlannedTensor& output = tensor.outputs[i];
      const auto data = std::make_shared<const std::byte>();  // A unique address serves as name.
      sources_.emplace(data.get(), Source{.tensor = &tensor, .output = i});
      tensors_.insert_or_assign(
          output.name,
          Tensor{
              .dtype = output.dtype,
              .shape = output.shape,
              .data = data,
              .release = tensor.release,
          }
      );
    }
  }
}

std::optional<PlaceholderTensors::Source> PlaceholderTensors::find(const Tensor& tensor) const {
  const auto found = sources_.find(tensor.data.get());
  return found != sources_.end() ? std::optional(found->second) : std::nullopt;
}

}  // namespace saker::load::importers

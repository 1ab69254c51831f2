// SPDX-License-Identifier: Apache-2.0
#include "saker/load/convert/step_values.h"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace saker::load {

std::size_t code_bytes(const kernels::WeightFormat& format, std::size_t count) {
  return count * static_cast<std::size_t>(format.bits) / 8;
}

std::size_t scale_bytes(const kernels::WeightFormat& format, DType dtype, std::size_t count) {
  const std::size_t one = format.kind == kernels::WeightKind::kAffine ? dtype_size(dtype) : 1;
  return count / static_cast<std::size_t>(format.group_size) * one;
}

const std::byte* StepValues::bytes_at(const ModelTensor& tensor, std::size_t offset) {
  const Tensor& part = tensor.parts[run_.part];
  const auto source = made_ != nullptr ? made_->find(part) : std::nullopt;
  if (!source) {
    return part.data.get() + offset;
  }
  const MadeRows& rows = rows_of(*source);
  const std::size_t begin = rows.first * source->tensor->row_bytes(source->output);
  return rows.bytes.data() + (offset - begin);
}

void StepValues::read(std::size_t first, std::size_t count, DType dtype, float* to) {
  const kernels::QuantizeLoops& loops = kernels::quantize_loops();
  const TensorStep& step = *run_.step;
  const std::size_t at = static_cast<std::size_t>(run_.begin) + first;
  if (!step.codes && step.source.turned) {
    read_turned(at, count, to);
    return;
  }
  if (!step.codes) {
    const DType own = step.source.dtype();
    loops.widen(bytes_at(step.source, at * dtype_size(own)), own, count, to);
    return;
  }
  const kernels::WeightFormat& format = *step.codes;
  const DType scale_dtype = step.scales->dtype();
  const std::size_t scale_at = scale_bytes(format, scale_dtype, at);
  loops.decode(
      format,
      dtype,
      {.codes = bytes_at(step.source, code_bytes(format, at)),
       .scales = bytes_at(*step.scales, scale_at),
       .biases = step.biases ? bytes_at(*step.biases, scale_at) : nullptr,
       .dtype = scale_dtype},
      count,
      to
  );
}

void StepValues::read_turned(std::size_t first, std::size_t count, float* to) const {
  const Tensor& part = run_.step->source.parts[run_.part];
  const auto rows = static_cast<std::size_t>(part.shape[0]);
  const auto columns = static_cast<std::size_t>(part.shape[1]);
  const std::size_t size = dtype_size(part.dtype);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = first + i;
    const std::byte* from = part.data.get() + (at % columns * rows + at / columns) * size;
    kernels::quantize_loops().widen(from, part.dtype, 1, to + i);
  }
}

const StepValues::MadeRows& StepValues::rows_of(const importers::PlaceholderTensors::Source& source
) {
  for (const MadeRows& rows : made_rows_) {
    if (rows.source.tensor == source.tensor && rows.source.output == source.output) {
      return rows;
    }
  }
  make(source);
  return made_rows_.back();
}

void StepValues::make(const importers::PlaceholderTensors::Source& source) {
  const importers::LazyTensor& tensor = *source.tensor;
  const std::int64_t row = run_.step->part_elements() / tensor.rows;
  const std::int64_t first = run_.begin / row;
  const std::int64_t count = (run_.begin + run_.count + row - 1) / row - first;
  MadeRows rows{.source = source, .first = static_cast<std::size_t>(first), .bytes = {}};
  rows.bytes.resize(tensor.row_bytes(source.output) * static_cast<std::size_t>(count));
  std::vector<std::byte*> places(tensor.outputs.size(), nullptr);
  places[source.output] = rows.bytes.data();
  tensor.make(first, count, places);
  made_rows_.push_back(std::move(rows));
}

}  // namespace saker::load

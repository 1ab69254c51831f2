// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/export_tensor.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/convert/step_values.h"
#include "saker/load/encode/encode_block.h"

#include <algorithm>
#include <cmath>

namespace saker::load::gguf {
namespace {

void require_finite(const ExportTensor& tensor, std::span<const float> row) {
  const auto bad = std::ranges::find_if(row, [](float value) { return !std::isfinite(value); });
  require(
      bad == row.end(),
      ErrorCode::kCorruptData,
      "tensor {} has a weight that is not finite: {}",
      quote(tensor.file.role.name),
      bad != row.end() ? *bad : 0.0F
  );
}

// Numbers and scales of float16 end at 65504, and bf16 rounds the largest floats to infinity. Rows of
// smaller numbers fit every type.
void require_fits(
    const ExportTensor& tensor, std::span<const float> row, const std::byte* encoded
) {
  constexpr float kLargestHalf = 65504.0F;
  const auto magnitude = [](float value) { return std::abs(value); };
  const float largest = magnitude(std::ranges::max(row, {}, magnitude));
  if (largest <= kLargestHalf) {
    return;
  }
  std::vector<float> decoded(row.size());
  to_floats(tensor.type, encoded, row.size(), decoded.data());
  require(
      std::ranges::all_of(decoded, [](float value) { return std::isfinite(value); }),
      ErrorCode::kInvalidArgument,
      "tensor {} has {}, which {} cannot hold: expected another --type, such as BF16 or F32",
      quote(tensor.file.role.name),
      largest,
      facts_of(tensor.type).name
  );
}

}  // namespace

std::int64_t ExportTensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) {
    product *= size;
  }
  return product;
}

std::int64_t ExportTensor::columns() const {
  return shape.size() == 1 && file.role.moves_rows() ? 1 : shape.back();
}

std::size_t ExportTensor::row_bytes() const {
  const TypeFacts& facts = facts_of(type);
  return static_cast<std::size_t>(columns() / facts.block) * facts.block_bytes;
}

std::span<const float> ExportTensor::importance_of(std::int64_t row) const {
  if (importance.empty()) {
    return {};
  }
  const auto width = static_cast<std::size_t>(columns());
  const auto experts = static_cast<std::int64_t>(importance.size() / width);
  const auto expert = static_cast<std::size_t>(row / (rows() / experts));
  return std::span(importance).subspan(expert * width, width);
}

RowEncoder::RowEncoder(const ExportTensor& tensor, const importers::PlaceholderTensors* made)
    : tensor_(tensor),
      made_(made),
      order_(folder_rows(tensor.file.role, tensor.shape)),
      columns_(reversed(tensor.file.role.columns)),
      row_(static_cast<std::size_t>(tensor.columns())) {}

void RowEncoder::encode(std::int64_t row, std::byte* to) {
  read(order_(row));
  for (float& value : row_) {
    value = file_value(tensor_.file.role, value + tensor_.step.source.offset);
  }
  if (columns_.moves()) {
    columns_.move_columns(std::as_writable_bytes(std::span(row_)), scratch_);
  }
  require_finite(tensor_, row_);
  encode_row(tensor_.type, row_, tensor_.importance_of(row), to);
  require_fits(tensor_, row_, to);
}

void RowEncoder::read(std::int64_t row) {
  const auto count = static_cast<std::int64_t>(row_.size());
  if (tensor_.step.source.parts.empty()) {
    std::copy_n(tensor_.values.begin() + row * count, count, row_.begin());
    return;
  }
  const std::int64_t part_rows = tensor_.step.part_elements() / count;
  const StepRun run{
      .step = &tensor_.step,
      .part = static_cast<std::size_t>(row / part_rows),
      .begin = row % part_rows * count,
      .count = count,
  };
  StepValues(run, made_).read(0, row_.size(), DType::kFloat32, row_.data());
}

}  // namespace saker::load::gguf

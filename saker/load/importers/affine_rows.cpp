// SPDX-License-Identifier: Apache-2.0
#include "saker/load/importers/affine_rows.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

namespace saker::load::importers {

Groups cut_groups(const ModuleParts& parts, std::int64_t columns, std::int64_t groups) {
  require(
      columns % groups == 0,
      ErrorCode::kCorruptData,
      "{}: {} inputs are no whole number of each of {} groups",
      quote(parts.path()),
      columns,
      groups
  );
  const std::int64_t size = columns / groups;
  for (const int known : {128, 64, 32}) {
    if (size % known == 0) {
      return {static_cast<std::size_t>(groups), static_cast<std::size_t>(size / known), known};
    }
  }
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format("{}: groups of {} inputs, expected a multiple of 32", quote(parts.path()), size)
  );
}

LazyTensor affine_outputs(
    const std::string& path, std::int64_t rows, std::int64_t words, std::int64_t groups, DType dtype
) {
  LazyTensor tensor;
  tensor.outputs = {
      {path + ".weight", DType::kUInt32, {rows, words}},
      {path + ".scales", dtype, {rows, groups}},
      {path + ".biases", dtype, {rows, groups}},
  };
  tensor.rows = rows;
  return tensor;
}

void RowScales::refuse(float value) const {
  throw Error(
      ErrorCode::kCorruptData,
      fmt::format(
          "{}: a scale or its zero point times it is {} in {}, expected a number",
          quote(path_),
          value,
          dtype_name(dtype_)
      )
  );
}

}  // namespace saker::load::importers

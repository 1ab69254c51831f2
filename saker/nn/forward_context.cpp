// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/forward_context.h"

#include "saker/base/error.h"

namespace saker::nn {

ForwardContext::ForwardContext(std::vector<Span> spans) : spans_(std::move(spans)) {
  require(!spans_.empty(), ErrorCode::kInvalidArgument, "[forward] no spans");
  std::vector<AdapterUse> adapters;
  for (const auto& span : spans_) {
    require(
        span.cache != nullptr && span.row_count > 0,
        ErrorCode::kInvalidArgument,
        "[forward] a span needs a cache and at least one row, got {} rows",
        span.row_count
    );
    const auto first = span.cache->layer(0).rope_offset();
    for (int row = 0; row < span.row_count; ++row) {
      positions_.push_back(first + row);
      adapters.push_back(span.adapter);
    }
  }
  adapters_ = RowAdapters(std::move(adapters));
}

std::vector<kernels::AttendSpan> ForwardContext::append(int layer) {
  std::vector<kernels::AttendSpan> result;
  result.reserve(spans_.size());
  int first_row = 0;
  for (const auto& span : spans_) {
    result.push_back(span.cache->layer(layer).append(first_row, span.row_count));
    first_row += span.row_count;
  }
  return result;
}

const RopeTable& ForwardContext::rope_table(const Rope& rope) {
  const auto found = rope_tables_.find(&rope);
  if (found != rope_tables_.end()) {
    return found->second;
  }
  return rope_tables_.emplace(&rope, rope.table(positions_)).first->second;
}

}  // namespace saker::nn

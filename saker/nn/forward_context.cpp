// SPDX-License-Identifier: Apache-2.0
#include "saker/nn/forward_context.h"

#include "saker/base/error.h"

namespace saker::nn {

namespace {

void check_span(const Span& span) {
  require(
      span.cache != nullptr && span.row_count > 0,
      ErrorCode::kInvalidArgument,
      "[forward] a span needs a cache and at least one row, got {} rows",
      span.row_count
  );
}

}  // namespace

ForwardContext::ForwardContext(std::vector<Span> spans, std::optional<Fork> fork)
    : spans_(std::move(spans)), fork_(std::move(fork)) {
  require(!spans_.empty(), ErrorCode::kInvalidArgument, "[forward] no spans");
  for (const auto& span : spans_) {
    check_span(span);
    const auto first = span.cache->layer(0).rope_offset();
    for (int row = 0; row < span.row_count; ++row) {
      positions_.push_back(first + row);
    }
  }
  adapters_ = adapters_of(spans_);
  if (fork_) {
    check(*fork_);
  }
}

ForwardContext ForwardContext::over_last_rows(
    std::vector<Span> spans, std::span<const int> layers
) {
  ForwardContext context(std::move(spans));
  for (std::size_t i = 0; i < context.spans_.size(); ++i) {
    const Span& span = context.spans_[i];
    require(
        span.row_count == 1 && span.cache->offset() > 0,
        ErrorCode::kInvalidArgument,
        "[forward] {} rows over a cache of {}, expected one over at least one",
        span.row_count,
        span.cache->offset()
    );
    context.positions_[i] -= 1;
    for (const int layer : layers) {
      context.appended_[layer].push_back(span.cache->layer(layer).last_row(static_cast<int>(i)));
    }
  }
  return context;
}

void ForwardContext::check(const Fork& fork) const {
  std::size_t count = 0;
  for (const auto& span : fork.spans) {
    check_span(span);
    count += static_cast<std::size_t>(span.row_count);
  }
  require(
      count > 0 && count == fork.rows.size(),
      ErrorCode::kInvalidArgument,
      "[forward] a fork's spans have {} rows, but it copies {}",
      count,
      fork.rows.size()
  );
  for (const std::int32_t row : fork.rows) {
    require(
        row >= 0 && row < row_count(),
        ErrorCode::kInvalidArgument,
        "[forward] a fork copies row {} of {}",
        row,
        row_count()
    );
  }
}

RowContext ForwardContext::adapters_of(std::span<const Span> spans) {
  std::vector<AdapterUse> adapters;
  std::vector<kernels::RowRange> int8_rows;
  for (const auto& span : spans) {
    if (span.int8) {
      int8_rows.push_back({static_cast<int>(adapters.size()), span.row_count});
    }
    adapters.insert(adapters.end(), static_cast<std::size_t>(span.row_count), span.adapter);
  }
  return RowContext(std::move(adapters), std::move(int8_rows));
}

mx::array ForwardContext::fork() {
  Fork fork = std::move(*fork_);
  fork_.reset();
  std::vector<std::int64_t> positions;
  positions.reserve(fork.rows.size());
  for (const std::int32_t row : fork.rows) {
    positions.push_back(positions_[static_cast<std::size_t>(row)]);
  }
  spans_ = std::move(fork.spans);
  positions_ = std::move(positions);
  adapters_ = adapters_of(spans_);
  if (observer_ != nullptr) {
    adapters_ = adapters_.observed_by(*observer_);
  }
  rope_tables_.clear();
  appended_.clear();
  return mx::array(fork.rows.data(), mx::Shape{static_cast<int>(fork.rows.size())});
}

void ForwardContext::observe_inputs(InputObserver& observer) {
  observer_ = &observer;
  adapters_ = adapters_.observed_by(observer);
}

const std::vector<kernels::AttendSpan>& ForwardContext::append(int layer) {
  std::vector<kernels::AttendSpan> result;
  result.reserve(spans_.size());
  int first_row = 0;
  for (const auto& span : spans_) {
    result.push_back(span.cache->layer(layer).append(first_row, span.row_count));
    first_row += span.row_count;
  }
  return appended_.insert_or_assign(layer, std::move(result)).first->second;
}

const std::vector<kernels::AttendSpan>& ForwardContext::appended(int layer) const {
  const auto found = appended_.find(layer);
  require(
      found != appended_.end(),
      ErrorCode::kInternal,
      "[forward] layer {} has no rows of this pass to share",
      layer
  );
  return found->second;
}

std::vector<cache::RecurrentCache*> ForwardContext::recurrent(int layer) const {
  std::vector<cache::RecurrentCache*> result;
  result.reserve(spans_.size());
  for (const auto& span : spans_) {
    auto* state = dynamic_cast<cache::RecurrentCache*>(&span.cache->layer(layer));
    require(
        state != nullptr,
        ErrorCode::kInternal,
        "[forward] layer {} has a {}, expected a state",
        layer,
        span.cache->layer(layer).kind()
    );
    result.push_back(state);
  }
  return result;
}

mx::array ForwardContext::captured_hidden(
    const mx::array& final_rows, std::span<const std::int32_t> rows
) const {
  for (const std::int32_t row : rows) {
    require(
        row >= 0 && row < row_count(),
        ErrorCode::kInvalidArgument,
        "[forward] a tap of row {}, expected 0 to {}",
        row,
        row_count() - 1
    );
  }
  const mx::array wanted(rows.data(), {static_cast<int>(rows.size())}, mx::int32);
  if (captured_layers.empty()) {
    return mx::take(final_rows, wanted, 0);
  }
  std::vector<mx::array> parts;
  parts.reserve(captured_layers.size());
  for (const int layer : captured_layers) {
    const auto found = captured.find(layer);
    require(
        found != captured.end() && found->second.shape(0) == row_count(),
        ErrorCode::kInternal,
        "[forward] layer {} was not captured in these rows",
        layer
    );
    parts.push_back(mx::take(found->second, wanted, 0));
  }
  return mx::concatenate(parts, 1);
}

const RopeTable& ForwardContext::rope_table(const Rope& rope) {
  const auto found = rope_tables_.find(&rope);
  if (found != rope_tables_.end()) {
    return found->second;
  }
  return rope_tables_.emplace(&rope, rope.table(positions_)).first->second;
}

}  // namespace saker::nn

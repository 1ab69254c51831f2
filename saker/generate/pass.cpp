// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/pass.h"

#include "saker/base/error.h"
#include "saker/models/token_ids.h"
#include "saker/nn/forward_context.h"

#include <numeric>
#include <utility>

namespace saker::generate {

namespace {

constexpr int kFewRows = 32;  // Slices of up to this many tokens may keep the whole array alive.

}  // namespace

mx::array CapturedHidden::of(std::span<const int> wanted, int first, int end) const {
  std::vector<mx::array> parts;
  parts.reserve(wanted.size());
  const int count = rows.at(wanted.front()).shape(0);
  const bool whole = first == 0 && end == count;
  for (const int layer : wanted) {
    const mx::array& all = rows.at(layer);
    parts.push_back(whole ? all : mx::slice(all, {first, 0}, {end, all.shape(1)}));
  }
  mx::array result = parts.size() == 1 ? parts.front() : mx::concatenate(parts, 1);
  if (!whole && count > kFewRows) {
    result = mx::contiguous(result);
    mx::eval(result);
  }
  return result;
}

RowLogits run_rows(
    const models::Model& model,
    std::span<const PassSpan> spans,
    CapturedHidden* captured,
    const std::function<void()>& meanwhile
) {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> wanted;
  std::vector<nn::Span> parts;
  for (const PassSpan& span : spans) {
    ids.insert(ids.end(), span.tokens.begin(), span.tokens.end());
    parts.push_back({span.cache, static_cast<int>(span.tokens.size()), span.adapter, span.int8});
    const auto end = static_cast<std::int32_t>(ids.size());
    for (std::int32_t row = end - span.logit_rows; row < end; ++row) {
      wanted.push_back(row);
    }
  }
  nn::ForwardContext context(std::move(parts));
  const bool captures = captured != nullptr && !captured->layers.empty();
  if (captures) {
    context.captured_layers = captured->layers;
  }
  const int row_count = static_cast<int>(ids.size());
  const int wanted_count = static_cast<int>(wanted.size());
  mx::array result = model.forward(mx::array(ids.data(), mx::Shape{row_count}), context);
  if (wanted_count > 0) {
    if (wanted_count < row_count) {
      result = mx::take(result, mx::array(wanted.data(), mx::Shape{wanted_count}), 0);
    }
    result = mx::contiguous(
        mx::astype(model.unembed(result, context.adapters().select(wanted)), mx::float32)
    );
  }
  std::vector<mx::array> results = {result};
  if (captures) {
    captured->rows = std::move(context.captured);
    results.reserve(1 + captured->rows.size());
    for (const auto& [layer, rows] : captured->rows) {
      results.push_back(rows);
    }
  }
  if (meanwhile) {
    mx::async_eval(results);
    meanwhile();
  }
  mx::eval(std::move(results));
  return {std::move(result), model.info().vocab_size};
}

PassTransaction::PassTransaction(std::span<const PassSpan> spans) {
  open_.reserve(spans.size());
  try {
    for (const PassSpan& span : spans) {
      span.cache->begin();
      open_.push_back({span.cache, static_cast<std::int64_t>(span.tokens.size())});
    }
  } catch (...) {
    roll_back();
    throw;
  }
}

PassTransaction::~PassTransaction() {
  roll_back();
}

void PassTransaction::commit(std::size_t index, std::int64_t count) {
  Open& open = open_.at(index);
  require(
      open.cache != nullptr && count >= 0 && count <= open.rows,
      ErrorCode::kInternal,
      "[pass] commit of {} rows of a span of {}",
      count,
      open.rows
  );
  open.cache->commit(count);
  open.cache = nullptr;
}

void PassTransaction::roll_back() {
  for (const Open& open : open_) {
    if (open.cache != nullptr) {
      open.cache->roll_back();
    }
  }
}

AcceptedBlock forward_accept_all_block(
    const models::Model& model,
    cache::SequenceCache& cache,
    std::span<const std::int32_t> tokens,
    std::span<const int> captured_layers
) {
  models::check_token_ids(model.info(), tokens);
  const int count = static_cast<int>(tokens.size());
  const PassSpan span{.cache = &cache, .tokens = {tokens.begin(), tokens.end()}};
  PassTransaction transaction({&span, 1});
  nn::ForwardContext context({{&cache, count}});
  context.captured_layers.assign(captured_layers.begin(), captured_layers.end());
  const auto final_rows = model.forward(mx::array(tokens.data(), mx::Shape{count}), context);
  std::vector<std::int32_t> all(tokens.size());
  std::iota(all.begin(), all.end(), 0);
  const auto last = mx::slice(final_rows, {count - 1, 0}, {count, final_rows.shape(1)});
  AcceptedBlock block{
      .logits = mx::astype(model.unembed(last, {}), mx::float32),
      .captured = context.captured_hidden(final_rows, all),
  };
  mx::eval(block.logits, block.captured);
  transaction.commit(0, count);
  return block;
}

}  // namespace saker::generate

// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/pass.h"

#include "saker/nn/forward_context.h"

#include <utility>

namespace saker::generate {

namespace {

constexpr int kFewRows = 32;  // That a part of them may hold in memory.

}  // namespace

mx::array TapRows::of(std::span<const int> wanted, int first, int end) const {
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

RowLogits run_rows(const models::Model& model, std::span<const PassSpan> spans, TapRows* taps) {
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
  const bool tapped = taps != nullptr && !taps->layers.empty();
  if (tapped) {
    context.tap_layers = taps->layers;
  }
  const int row_count = static_cast<int>(ids.size());
  const int wanted_count = static_cast<int>(wanted.size());
  mx::array result = model.forward(mx::array(ids.data(), {row_count}, mx::int32), context);
  if (wanted_count > 0) {
    if (wanted_count < row_count) {
      result = mx::take(result, mx::array(wanted.data(), {wanted_count}, mx::int32), 0);
    }
    result = mx::contiguous(
        mx::astype(model.unembed(result, context.adapters().select(wanted)), mx::float32)
    );
  }
  std::vector<mx::array> results = {result};
  if (tapped) {
    taps->rows = std::move(context.taps);
    results.reserve(1 + taps->rows.size());
    for (const auto& [layer, rows] : taps->rows) {
      results.push_back(rows);
    }
  }
  mx::eval(std::move(results));
  return {std::move(result), model.info().vocab_size};
}

PassTransaction::PassTransaction(std::span<const PassSpan> spans) {
  open_.reserve(spans.size());
  try {
    for (const PassSpan& span : spans) {
      span.cache->begin();
      open_.push_back(span.cache);
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
  open_[index]->commit(count);
  open_[index] = nullptr;
}

void PassTransaction::roll_back() {
  for (cache::SequenceCache* cache : open_) {
    if (cache != nullptr) {
      cache->roll_back();
    }
  }
}

}  // namespace saker::generate

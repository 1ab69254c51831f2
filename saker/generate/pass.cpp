// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/pass.h"

#include "saker/nn/forward_context.h"

#include <numeric>

namespace saker::generate {

namespace {

// The tapped rows of the whole pass, not evaluated.
mx::array all_taps(const nn::ForwardContext& context, const mx::array& final_rows) {
  std::vector<std::int32_t> rows(static_cast<std::size_t>(context.row_count()));
  std::iota(rows.begin(), rows.end(), 0);
  return context.tapped(final_rows, rows);
}

}  // namespace

RowLogits run_rows(const models::Model& model, std::span<const PassSpan> spans, TapRows* taps) {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> wanted;
  std::vector<nn::Span> parts;
  for (const PassSpan& span : spans) {
    ids.insert(ids.end(), span.tokens.begin(), span.tokens.end());
    parts.push_back({span.cache, static_cast<int>(span.tokens.size()), span.adapter});
    const auto end = static_cast<std::int32_t>(ids.size());
    for (std::int32_t row = end - span.logit_rows; row < end; ++row) {
      wanted.push_back(row);
    }
  }
  nn::ForwardContext context(std::move(parts));
  const bool tapped = taps != nullptr && !taps->layers.empty();
  if (tapped) {
    context.tap_layers.assign(taps->layers.begin(), taps->layers.end());
  }
  const int row_count = static_cast<int>(ids.size());
  const int wanted_count = static_cast<int>(wanted.size());
  mx::array result = model.forward(mx::array(ids.data(), {row_count}, mx::int32), context);
  if (tapped) {
    taps->rows = all_taps(context, result);
  }
  if (wanted_count > 0) {
    if (wanted_count < row_count) {
      result = mx::take(result, mx::array(wanted.data(), {wanted_count}, mx::int32), 0);
    }
    result = mx::contiguous(
        mx::astype(model.unembed(result, context.adapters().select(wanted)), mx::float32)
    );
  }
  if (tapped) {
    mx::eval(result, *taps->rows);
  } else {
    mx::eval(result);
  }
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

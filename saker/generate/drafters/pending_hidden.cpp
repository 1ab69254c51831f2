// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/drafters/pending_hidden.h"

#include <utility>

namespace saker::generate {
namespace {

constexpr int kEvaluatedRows = 16;  // Parts of at least this many rows are evaluated at once.
constexpr std::size_t kWaitingParts = 16;  // Smaller parts are evaluated when there are this many.

mx::array rows_of(const mx::array& x, int first, int end) {
  return mx::slice(x, {first, 0}, {end, x.shape(1)});
}

}  // namespace

mx::array joined_rows(const std::vector<mx::array>& parts) {
  return parts.size() == 1 ? parts.front() : mx::concatenate(parts, 0);
}

void PendingHidden::push(const mx::array& rows) {
  rows_ += rows.shape(0);
  bytes_ += rows.nbytes();
  parts_.push_back(rows);
  if (rows.shape(0) >= kEvaluatedRows || parts_.size() - evaluated_ >= kWaitingParts) {
    evaluate_parts();
  }
}

void PendingHidden::evaluate_parts() {
  const auto first = parts_.begin() + static_cast<std::ptrdiff_t>(evaluated_);
  mx::array own = mx::contiguous(joined_rows({first, parts_.end()}));
  mx::eval(own);
  parts_.erase(first, parts_.end());
  parts_.push_back(std::move(own));
  evaluated_ = parts_.size();
}

mx::array PendingHidden::pop(int count, int wanted) {
  mx::array all = joined_rows(parts_);
  const int rows = std::exchange(rows_, rows_ - count);
  parts_.clear();
  evaluated_ = 0;
  bytes_ = static_cast<std::size_t>(rows_) * all.nbytes() / static_cast<std::size_t>(rows);
  if (wanted == rows) {
    return all;
  }
  mx::array result = mx::contiguous(rows_of(all, count - wanted, count));
  if (rows_ > 0) {
    parts_.push_back(rows_of(all, count, rows));
    evaluated_ = 1;
    mx::eval(result, parts_.front());
  } else {
    mx::eval(result);
  }
  return result;
}

void PendingHidden::clear() {
  parts_.clear();
  evaluated_ = 0;
  rows_ = 0;
  bytes_ = 0;
}

}  // namespace saker::generate

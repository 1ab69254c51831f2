// SPDX-License-Identifier: Apache-2.0
#include "saker/generate/drafters/kept_rows.h"

#include <utility>

namespace saker::generate {
namespace {

mx::array rows_of(const mx::array& x, int first, int end) {
  return mx::slice(x, {first, 0}, {end, x.shape(1)});
}

}  // namespace

mx::array joined_rows(const std::vector<mx::array>& parts) {
  return parts.size() == 1 ? parts.front() : mx::concatenate(parts, 0);
}

void KeptRows::push(const mx::array& rows) {
  mx::array own = mx::contiguous(rows);
  mx::eval(own);
  rows_ += own.shape(0);
  bytes_ += own.nbytes();
  parts_.push_back(std::move(own));
}

mx::array KeptRows::pop(int count, int wanted) {
  const mx::array all = joined_rows(parts_);
  mx::array result = mx::contiguous(rows_of(all, count - wanted, count));
  std::vector<mx::array> left;
  if (count < rows_) {
    left.push_back(rows_of(all, count, rows_));
  }
  mx::eval(result);
  parts_ = std::move(left);
  rows_ -= count;
  bytes_ = static_cast<std::size_t>(rows_) * result.nbytes() / static_cast<std::size_t>(wanted);
  return result;
}

void KeptRows::clear() {
  parts_.clear();
  rows_ = 0;
  bytes_ = 0;
}

}  // namespace saker::generate

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rows that a target gave for a sequence and that its drafter has not taken up yet, in order. They
// may come unevaluated and are evaluated some rows at a time, so that a token whose drafter is not
// asked costs no wait.
// REQUIRES: the thread that owns MLX.

#include "saker/kernels/mx.h"

#include <cstddef>
#include <vector>

namespace saker::generate {

// Parts [n, W] below each other; a single one as it is. REQUIRES: at least one.
mx::array joined_rows(const std::vector<mx::array>& parts);

class PendingHidden {
 public:
  int size() const { return rows_; }

  std::size_t nbytes() const { return bytes_; }

  // Rows [n, W], all of the same W and dtype.
  void push(const mx::array& rows);

  // Takes the first `count` rows away; gives the last `wanted` of them, maybe unevaluated.
  // REQUIRES: 1 <= wanted <= count <= size().
  mx::array pop(int count, int wanted);

  mx::array pop(int count) { return pop(count, count); }

  void clear();

 private:
  // Joins and evaluates the last parts, so that they hold no other memory than their own.
  void settle();

  std::vector<mx::array> parts_;
  std::size_t settled_ = 0;  // Of the parts.
  int rows_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace saker::generate

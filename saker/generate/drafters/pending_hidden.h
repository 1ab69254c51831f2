// SPDX-License-Identifier: Apache-2.0
#pragma once

// Captured hidden states of a sequence that its drafter has not run yet, in order. They may come
// unevaluated and are evaluated several at a time, so a token that gets no drafts causes no wait.
// REQUIRES: the thread that owns MLX.

#include "saker/kernels/mx.h"

#include <cstddef>
#include <vector>

namespace saker::generate {

// Joins parts [n, W] along n; returns a single part as it is. REQUIRES: at least one.
mx::array joined_rows(const std::vector<mx::array>& parts);

class PendingHidden {
 public:
  int size() const { return rows_; }

  std::size_t nbytes() const { return bytes_; }

  // Adds rows [n, W], all with equal W and dtype.
  void push(const mx::array& rows);

  // Removes the first `count` rows and returns the last `wanted` of them, possibly unevaluated.
  // REQUIRES: 1 <= wanted <= count <= size().
  mx::array pop(int count, int wanted);

  mx::array pop(int count) { return pop(count, count); }

  void clear();

 private:
  // Joins and evaluates the last parts, so they hold no other memory than their own.
  void evaluate_parts();

  std::vector<mx::array> parts_;
  std::size_t evaluated_ = 0;  // Number of evaluated parts.
  int rows_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace saker::generate

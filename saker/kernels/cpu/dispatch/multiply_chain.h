// SPDX-License-Identifier: Apache-2.0
#pragma once

// Products in two stages as one job: the rows of a product of the second stage are made from results
// of the first, and it begins when its own sources are done. So threads do not wait for each other
// between the stages, except where one has nothing else left.

#include "saker/kernels/cpu/dispatch/multiply.h"

#include <functional>
#include <span>

namespace saker::kernels {

inline constexpr int kFeedsNone = -1;

struct ProductChain {
  std::span<const RowProduct> first;
  // The product of `second` that each of `first` is a source of, or kFeedsNone.
  std::span<const int> feeds;
  // Each has a source, and memory of its own as x; none has `make`.
  std::span<const RowProduct> second;
  // Writes x of second[index] from the results of its sources. Called once for each, on the thread
  // that computed the last of them. Must not throw.
  std::function<void(int index)> between;
};

// All products have rows. Bits are those of multiply_rows, stage by stage. Throws as multiply_rows.
void multiply_chain(const LinearBodies& bodies, const ProductChain& chain);

}  // namespace saker::kernels

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adapters of noise, to measure what a change of an adapter's size and shape does by chance. Both
// low-rank matrices of every module hold independent normal numbers of deviation
// init_scale * sqrt(rank_scale), as dlm-sway's null adapters do; scales stay the adapter's. What is
// no low-rank pair (magnitudes, biases, replaced weights) stays the base's. The same seed gives the
// same bits on every machine.

#include "saker/adapters/adapter_source.h"

#include <cstdint>

namespace saker::adapters {

struct NullOptions {
  std::uint64_t seed = 0;
  double init_scale = 0.02;
  double rank_scale = 1.0;
};

// Throws kInvalidArgument unless both numbers are finite, rank_scale is positive and init_scale not
// negative, and kUnsupported for an adapter without low-rank pairs.
AdapterSource null_adapter(const AdapterSource& source, const NullOptions& options);

}  // namespace saker::adapters

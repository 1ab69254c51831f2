// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adapters of noise: they measure the effect that a change of an adapter's size and shape has by
// chance. Both low-rank matrices of every module get independent normal numbers of deviation
// init_scale * sqrt(rank_scale), as in dlm-sway's null adapters; scales stay the adapter's.
// Everything else (magnitudes, biases, replaced weights) stays the base's. A seed gives the same
// bits on every machine.

#include "saker/adapters/adapter_source.h"

#include <cstdint>

namespace saker::adapters {

struct NullOptions {
  std::uint64_t seed = 0;
  double init_scale = 0.02;
  double rank_scale = 1.0;
};

// Throws kInvalidArgument unless both numbers are finite, rank_scale > 0 and init_scale >= 0, and
// kUnsupported for an adapter without low-rank pairs.
AdapterSource null_adapter(const AdapterSource& source, const NullOptions& options);

}  // namespace saker::adapters

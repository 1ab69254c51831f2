// SPDX-License-Identifier: Apache-2.0
#pragma once

// The arrays that attention reads from a cache: rows and mask. Pure; MLX's rules for threads.

#include "saker/kernels/mx.h"

#include <cstdint>
#include <optional>

namespace saker::cache {

struct KeyValues {
  mx::array keys;    // [B, H_kv, S, D]; B is 1 in a LayerCache.
  mx::array values;  // [B, H_kv, S, D_v]
};

// The mask that attention over n new rows needs.
struct Mask {
  enum class Kind : std::uint8_t { kNone, kCausal, kArray };

  Kind kind = Kind::kNone;
  std::optional<mx::array> array;  // Boolean [n, S], true where a row sees a key; kArray only.
};

// Default number of first rows that stay if a sequence's memory is bounded (as in mlx-lm);
// attention relies on them.
inline constexpr int kRotatingDefaultKeep = 4;

// Boolean [n, offset + n]. New row i, at index offset + i, sees itself and earlier keys; with
// window > 0 only the last `window` of these.
mx::array causal_mask(int n, int offset, int window);

}  // namespace saker::cache

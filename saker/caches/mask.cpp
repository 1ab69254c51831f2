// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/mask.h"

#include "saker/base/error.h"
#include "saker/cache/attention_inputs.h"

#include <cstdint>
#include <optional>

namespace saker::caches {

Mask create_attention_mask(int n, std::int64_t offset, std::optional<int> window, MaskForm form) {
  require(
      n >= 1 && offset >= 0 && offset <= INT32_MAX - n,
      ErrorCode::kInvalidArgument,
      "[mask] {} rows at position {}, expected 1 or more within 32 bits",
      n,
      offset
  );
  const int before = static_cast<int>(offset);
  if (window) {
    return {Mask::Kind::kArray, cache::causal_mask(n, before, *window)};
  }
  if (n == 1) {
    return {Mask::Kind::kNone, std::nullopt};
  }
  if (form == MaskForm::kArray) {
    return {Mask::Kind::kArray, cache::causal_mask(n, before, 0)};
  }
  return {Mask::Kind::kCausal, std::nullopt};
}

}  // namespace saker::caches

// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/attention_inputs.h"

namespace saker::cache {

mx::array causal_mask(int n, int offset, int window) {
  const auto keys = mx::arange(0, offset + n, mx::int32);                              // [S]
  const auto queries = mx::expand_dims(mx::arange(offset, offset + n, mx::int32), 1);  // [n, 1]
  auto mask = mx::greater_equal(queries, keys);
  if (window > 0) {
    mask = mx::logical_and(mask, mx::less(mx::subtract(queries, keys), mx::array(window)));
  }
  return mask;
}

}  // namespace saker::cache

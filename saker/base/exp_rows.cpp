// SPDX-License-Identifier: Apache-2.0
#include "saker/base/exp_rows.h"

namespace saker {

namespace portable {
extern const ExpRows exp_rows_bodies;
}

#if defined(SAKER_HAS_AVX2)
namespace avx2 {
extern const ExpRows exp_rows_bodies;
}
#endif

#if defined(SAKER_HAS_AVX512)
namespace avx512 {
extern const ExpRows exp_rows_bodies;
}
#endif

const ExpRows& exp_rows() {
#if defined(SAKER_HAS_AVX512)
  static const bool has_avx512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0;
  if (has_avx512) {
    return avx512::exp_rows_bodies;
  }
#endif
#if defined(SAKER_HAS_AVX2)
  static const bool has_avx2 =
      __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  if (has_avx2) {
    return avx2::exp_rows_bodies;
  }
#endif
  return portable::exp_rows_bodies;
}

}  // namespace saker

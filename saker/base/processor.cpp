// SPDX-License-Identifier: Apache-2.0
#include "saker/base/processor.h"

namespace saker {

#if defined(__x86_64__)

bool runs_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0 &&
                          __builtin_cpu_supports("fma") != 0 && __builtin_cpu_supports("f16c") != 0;
  return has;
}

bool runs_avx512() {
  static const bool has = runs_avx2() && __builtin_cpu_supports("avx512f") != 0 &&
                          __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512vl") != 0 &&
                          __builtin_cpu_supports("avx512dq") != 0;
  return has;
}

#else

bool runs_avx2() {
  return false;
}

bool runs_avx512() {
  return false;
}

#endif

}  // namespace saker

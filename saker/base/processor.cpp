// SPDX-License-Identifier: Apache-2.0
#include "saker/base/processor.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>

#include <cstddef>
#include <initializer_list>
#endif

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

#if defined(__aarch64__) && defined(__linux__)

bool runs_neon_bf16() {
  constexpr unsigned long kMatrices = HWCAP2_I8MM | HWCAP2_BF16;
  static const bool has = (::getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0 &&
                          (::getauxval(AT_HWCAP2) & kMatrices) == kMatrices;
  return has;
}

#elif defined(__aarch64__) && defined(__APPLE__)

bool runs_neon_bf16() {
  static const bool has = [] {
    for (const char* name :
         {"hw.optional.arm.FEAT_DotProd", "hw.optional.arm.FEAT_BF16", "hw.optional.arm.FEAT_I8MM"
         }) {
      int value = 0;
      std::size_t size = sizeof(value);
      if (::sysctlbyname(name, &value, &size, nullptr, 0) != 0 || value == 0) {
        return false;
      }
    }
    return true;
  }();
  return has;
}

#else

bool runs_neon_bf16() {
  return false;
}

#endif

}  // namespace saker

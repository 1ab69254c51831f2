// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/scan_loops.h"

#include "saker/base/processor.h"

namespace saker::sample {

namespace portable {
extern const ScanLoops scan_loops_bodies;
}

#if defined(SAKER_HAS_AVX2)
namespace avx2 {
extern const ScanLoops scan_loops_bodies;
}
#endif

#if defined(SAKER_HAS_AVX512)
namespace avx512 {
extern const ScanLoops scan_loops_bodies;
}
#endif

const ScanLoops& scan_loops() {
#if defined(SAKER_HAS_AVX512)
  if (runs_avx512()) {
    return avx512::scan_loops_bodies;
  }
#endif
#if defined(SAKER_HAS_AVX2)
  if (runs_avx2()) {
    return avx2::scan_loops_bodies;
  }
#endif
  return portable::scan_loops_bodies;
}

}  // namespace saker::sample

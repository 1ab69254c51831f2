// SPDX-License-Identifier: Apache-2.0
#include "saker/kernels/quantize/quantize_loops.h"

#include "saker/base/processor.h"

namespace saker::kernels {

namespace portable {
extern const QuantizeLoops quantize_loops_bodies;
}

#if defined(SAKER_HAS_AVX2)
namespace avx2 {
extern const QuantizeLoops quantize_loops_bodies;
}
#endif

#if defined(SAKER_HAS_AVX512)
namespace avx512 {
extern const QuantizeLoops quantize_loops_bodies;
}
#endif

const QuantizeLoops& quantize_loops() {
#if defined(SAKER_HAS_AVX512)
  if (runs_avx512()) {
    return avx512::quantize_loops_bodies;
  }
#endif
#if defined(SAKER_HAS_AVX2)
  if (runs_avx2()) {
    return avx2::quantize_loops_bodies;
  }
#endif
  return portable::quantize_loops_bodies;
}

}  // namespace saker::kernels

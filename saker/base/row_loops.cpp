// SPDX-License-Identifier: Apache-2.0
#include "saker/base/row_loops.h"

#include "saker/base/processor.h"

namespace saker {

namespace portable {
extern const RowLoops row_loops_bodies;
}

#if defined(SAKER_HAS_AVX2)
namespace avx2 {
extern const RowLoops row_loops_bodies;
}
#endif

#if defined(SAKER_HAS_AVX512)
namespace avx512 {
extern const RowLoops row_loops_bodies;
}
#endif

const RowLoops& row_loops() {
#if defined(SAKER_HAS_AVX512)
  if (runs_avx512()) {
    return avx512::row_loops_bodies;
  }
#endif
#if defined(SAKER_HAS_AVX2)
  if (runs_avx2()) {
    return avx2::row_loops_bodies;
  }
#endif
  return portable::row_loops_bodies;
}

}  // namespace saker

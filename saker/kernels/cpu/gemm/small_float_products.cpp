// SPDX-License-Identifier: Apache-2.0
// Products of codes of E2M1 and E4M3.
#include "saker/kernels/cpu/gemm/products.h"

namespace saker::kernels::SAKER_ISA {

const Products small_float_products[2] = {
    FormatProducts<E2m1Format>::kProducts,
    FormatProducts<E4m3Format>::kProducts,
};

}  // namespace saker::kernels::SAKER_ISA

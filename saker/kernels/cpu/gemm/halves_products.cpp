// SPDX-License-Identifier: Apache-2.0
// Products of codes of 5 and 6 bits.
#include "saker/kernels/cpu/gemm/products.h"

namespace saker::kernels::SAKER_ISA {

const Products halves_products[] = {
    FormatProducts<HalvesFormat<5>>::kProducts,
    FormatProducts<HalvesFormat<6>>::kProducts,
};

}  // namespace saker::kernels::SAKER_ISA

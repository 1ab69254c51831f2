// SPDX-License-Identifier: Apache-2.0
// Products of codes of 2 and 3 bits, and of names.
#include "saker/kernels/cpu/gemm/products.h"

namespace saker::kernels::SAKER_ISA {

const Products narrow_products[] = {
    FormatProducts<HalvesFormat<2>>::kProducts,
    FormatProducts<HalvesFormat<3>>::kProducts,
    FormatProducts<NamesFormat>::kProducts,
};

}  // namespace saker::kernels::SAKER_ISA

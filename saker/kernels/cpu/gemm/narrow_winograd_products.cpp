// SPDX-License-Identifier: Apache-2.0
// Products of codes of 2 and 3 bits, and of names, by cpu/gemm/winograd.h.
#include "saker/kernels/cpu/gemm/products.h"

namespace saker::kernels::SAKER_ISA {

const Products narrow_winograd_products[] = {
    FormatProducts<WinogradFormat<HalvesFormat<2>>>::kProducts,
    FormatProducts<WinogradFormat<HalvesFormat<3>>>::kProducts,
    FormatProducts<WinogradFormat<NamesFormat>>::kProducts,
};

}  // namespace saker::kernels::SAKER_ISA

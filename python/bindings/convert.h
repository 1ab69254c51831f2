// SPDX-License-Identifier: Apache-2.0
#pragma once

// Models written anew: quantized, dequantized or in another dtype.

#include <nanobind/nanobind.h>

namespace saker::python {

void bind_convert(nanobind::module_& module);

}  // namespace saker::python

// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a model or file holds, read without loading it.

#include <nanobind/nanobind.h>

namespace saker::python {

void bind_inspect(nanobind::module_& module);

}  // namespace saker::python

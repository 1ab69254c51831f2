// SPDX-License-Identifier: Apache-2.0
#pragma once

// Models fetched from the hub into the cache, as `saker pull` does it.

#include <nanobind/nanobind.h>

namespace saker::python {

void bind_pull(nanobind::module_& module);

}  // namespace saker::python

// SPDX-License-Identifier: Apache-2.0
#pragma once

// saker::Error as the Python classes of saker.errors, one for each code. Threading: with the GIL.

#include "saker/base/error.h"

#include <nanobind/nanobind.h>

namespace saker::python {

// The exception object, not raised.
nanobind::object exception_of(const Error& error);

// From now on a saker::Error that leaves a bound function is raised as its class.
void translate_errors();

}  // namespace saker::python

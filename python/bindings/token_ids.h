// SPDX-License-Identifier: Apache-2.0
#pragma once

// Token ids from Python: lists, NumPy arrays, whatever can be iterated over. With the GIL.

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

namespace saker::python {

// As an argument of a bound function.
using TokenIds = nanobind::typed<nanobind::iterable, int>;

// Throws kInvalidArgument for integers beyond 32 bits, and Python's TypeError for what is none.
std::vector<std::int32_t> token_ids(const TokenIds& given);

}  // namespace saker::python

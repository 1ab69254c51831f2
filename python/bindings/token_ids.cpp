// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/token_ids.h"

#include "saker/engine/request.h"

#include <fmt/format.h>

#include <limits>

namespace nb = nanobind;

namespace saker::python {
namespace {

std::int32_t token_id(nb::handle given) {
  const nb::object number = nb::steal(PyNumber_Index(given.ptr()));
  if (!number.is_valid()) {
    throw nb::python_error();
  }
  using Limits = std::numeric_limits<std::int32_t>;
  int overflow = 0;
  const long long id = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (overflow != 0 || id < Limits::min() || id > Limits::max()) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "got {}, expected token ids from 0 to {}", nb::str(number).c_str(), Limits::max()
        )
    );
  }
  return static_cast<std::int32_t>(id);
}

}  // namespace

std::vector<std::int32_t> token_ids(const TokenIds& given) {
  std::vector<std::int32_t> ids;
  ids.reserve(nb::len_hint(given));
  for (const nb::handle id : given) {
    ids.push_back(token_id(id));
  }
  return ids;
}

}  // namespace saker::python

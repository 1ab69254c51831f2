// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/errors.h"

#include <exception>
#include <string>

namespace nb = nanobind;

namespace saker::python {

nb::object exception_of(const Error& error) {
  const std::string code(error_code_name(error.code()));
  const nb::object type = nb::module_::import_("saker.errors").attr("BY_CODE")[code.c_str()];
  return type(error.what());
}

void translate_errors() {
  nb::register_exception_translator([](const std::exception_ptr& caught, void*) {
    try {
      std::rethrow_exception(caught);
    } catch (const Error& error) {
      const nb::object exception = exception_of(error);
      PyErr_SetObject(exception.type().ptr(), exception.ptr());
    }
  });
}

}  // namespace saker::python

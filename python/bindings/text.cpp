// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/text.h"

#include "python/bindings/errors.h"
#include <fmt/format.h>

#include <utility>

namespace nb = nanobind;

namespace saker::python {

nb::str as_text(std::string_view text) {
  PyObject* const decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (decoded == nullptr) {
    throw nb::python_error();
  }
  return nb::steal<nb::str>(decoded);
}

std::string utf8_of(const nb::str& text, std::string_view what) {
  Py_ssize_t size = 0;
  if (const char* const data = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) {
    return {data, static_cast<std::size_t>(size)};
  }
  nb::python_error error;
  if (!error.matches(PyExc_UnicodeEncodeError)) {
    throw std::move(error);
  }
  const auto place = nb::cast<Py_ssize_t>(error.value().attr("start"));
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format(
          "{}: has the lone surrogate U+{:04X}, expected a text that UTF-8 can hold",
          what,
          PyUnicode_ReadChar(text.ptr(), place)
      )
  );
}

std::vector<std::string> utf8_of(const std::vector<nb::str>& texts, std::string_view what) {
  std::vector<std::string> result;
  result.reserve(texts.size());
  for (const nb::str& text : texts) {
    result.push_back(utf8_of(text, what));
  }
  return result;
}

Json json_of(const nb::str& text, std::string_view what) {
  const std::string json = utf8_of(text, what);
  const nb::gil_scoped_release release;
  return parse_json(json, what);
}

}  // namespace saker::python

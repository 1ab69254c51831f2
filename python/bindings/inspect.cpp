// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/inspect.h"

#include "saker/base/json/json_numbers.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/inspect/inspect.h"
#include "saker/load/inspect/inspection_report.h"
#include "saker/load/model_identity.h"

#include "python/bindings/text.h"
#include <nanobind/stl/optional.h>

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

namespace nb = nanobind;

namespace saker::python {
namespace {

nb::str inspect(const nb::str& given, std::optional<int> kv_bits) {
  const std::string path = utf8_of(given, "path");
  std::string json;
  {
    const nb::gil_scoped_release release;
    std::error_code ignored;
    const bool is_file = std::filesystem::is_regular_file(path, ignored);
    const auto found = is_file ? std::filesystem::path(path) : load::resolve_model(path);
    json = write_json(load::inspection_json(load::inspect(found, kv_bits)));
  }
  return as_text(json);
}

nb::str model_identity(const nb::str& given) {
  const std::string path = utf8_of(given, "path");
  std::string identity;
  {
    const nb::gil_scoped_release release;
    identity = load::model_identity(load::resolve_model(path));
  }
  return as_text(identity);
}

}  // namespace

void bind_inspect(nb::module_& module) {
  module.def(
      "inspect",
      inspect,
      nb::arg("path"),
      nb::arg("kv_bits").none(),
      "The report of ``saker inspect --json``."
  );
  module.def(
      "model_identity",
      model_identity,
      nb::arg("path"),
      "Checksums of the model's files and of this library, and the instruction set: what results "
      "depend on. Reads all weights."
  );
}

}  // namespace saker::python

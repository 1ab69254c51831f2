// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/convert.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/convert/convert_model.h"
#include "saker/load/files/model_dir.h"

#include "python/bindings/waiting.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace nb = nanobind;

namespace saker::python {
namespace {

using load::ConvertReport;

// Calls Python, if it is to be called; what that raises ends the conversion, as a stop does.
std::function<void(std::int64_t, std::int64_t)> calling(
    const nb::object& on_progress, const std::stop_token& stop
) {
  return [on_progress, stop](std::int64_t done, std::int64_t total) {
    if (stop.stop_requested()) {
      throw Error(ErrorCode::kCancelled, "the conversion was cancelled");
    }
    if (!on_progress.is_none()) {
      const nb::gil_scoped_acquire acquire;
      on_progress(done, total);
    }
  };
}

std::optional<DType> dtype_of(const std::optional<std::string>& name) {
  const auto dtype = name ? load::float_dtype(*name) : std::nullopt;
  require(
      dtype.has_value() || !name,
      ErrorCode::kInvalidArgument,
      "dtype: got {}, expected float32, float16 or bfloat16",
      quote(name.value_or(""))
  );
  return dtype;
}

ConvertReport convert(
    const std::string& source,
    const std::string& target,
    int bits,
    int group_size,
    const std::string& mode,
    const std::string& recipe,
    const std::vector<std::string>& rules,
    const std::optional<std::string>& dtype,
    bool dequantize,
    const nb::object& on_progress
) {
  load::ConvertOptions options;
  options.quantize = load::quantize_options(
      {.bits = bits, .group_size = group_size, .mode = mode, .recipe = recipe, .rules = rules}
  );
  options.dequantize = dequantize;
  options.dtype = dtype_of(dtype);
  std::stop_source stop;
  options.progress = calling(on_progress, stop.get_token());
  require(
      !options.quantize || !dequantize,
      ErrorCode::kInvalidArgument,
      "dequantize and quantizing exclude each other"
  );
  auto report = std::async(std::launch::async, [&] {
    return load::convert_model(load::resolve_source(source), target, options);
  });
  return wait_for(report, stop);
}

}  // namespace

void bind_convert(nb::module_& module) {
  nb::class_<ConvertReport>(module, "ConvertReport", "What a conversion wrote.")
      .def_ro("parameters", &ConvertReport::parameters, "As people count them.")
      .def_ro("tensors", &ConvertReport::tensors)
      .def_ro("bytes", &ConvertReport::bytes, "Of the tensors.")
      .def_ro("quantized", &ConvertReport::quantized, "Modules.")
      .def_ro("dequantized", &ConvertReport::dequantized, "Modules.")
      .def_ro("copied", &ConvertReport::copied, "Files, as they are.")
      .def_ro("warnings", &ConvertReport::warnings);
  module.def(
      "convert",
      convert,
      nb::arg("source"),
      nb::arg("target"),
      nb::arg("bits"),
      nb::arg("group_size"),
      nb::arg("mode"),
      nb::arg("recipe"),
      nb::arg("rules"),
      nb::arg("dtype").none(),
      nb::arg("dequantize"),
      nb::arg("on_progress").none()
  );
}

}  // namespace saker::python

// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/convert.h"

#include "saker/base/error.h"
#include "saker/load/convert/convert_model.h"
#include "saker/load/model_dir.h"

#include "python/bindings/waiting.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
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
  if (!name) {
    return std::nullopt;
  }
  require(
      *name == "float32" || *name == "float16" || *name == "bfloat16",
      ErrorCode::kInvalidArgument,
      "dtype: got {:?}, expected float32, float16 or bfloat16",
      *name
  );
  return *name == "float32"   ? DType::kFloat32
         : *name == "float16" ? DType::kFloat16
                              : DType::kBFloat16;
}

// How a model becomes quantized; none: it does not.
std::optional<load::QuantizeOptions> quantize_options(
    int bits,
    int group_size,
    const std::string& mode,
    const std::string& recipe,
    const std::vector<std::string>& rules
) {
  if (bits == 0 && group_size == 0 && mode.empty() && recipe.empty() && rules.empty()) {
    return std::nullopt;
  }
  load::QuantizeOptions quantize;
  quantize.format = load::quantized_format(mode.empty() ? "affine" : mode, bits, group_size);
  quantize.recipe = recipe;
  for (const std::string& rule : rules) {
    quantize.rules.push_back(load::parse_rule(rule));
  }
  return quantize;
}

// A model as `load` takes it, or a file of another program.
std::filesystem::path source_path(const std::string& source) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(source, ignored) ? std::filesystem::path(source)
                                                           : load::resolve_model(source);
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
  options.quantize = quantize_options(bits, group_size, mode, recipe, rules);
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
    return load::convert_model(source_path(source), target, options);
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

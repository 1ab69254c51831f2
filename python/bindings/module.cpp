// SPDX-License-Identifier: Apache-2.0
// The extension module saker._native: the engine as it is. What people use is in python/saker.
#include "saker/engine/logging.h"

#include "python/bindings/convert.h"
#include "python/bindings/errors.h"
#include "python/bindings/generate.h"
#include "python/bindings/inspect.h"
#include "python/bindings/model.h"
#include "python/bindings/pull.h"
#include "python/bindings/score.h"
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

// NOLINTNEXTLINE(performance-unnecessary-value-param): nanobind's macro declares it.
NB_MODULE(_native, module) {
  module.attr("VERSION") = SAKER_VERSION;
  saker::log_to_stderr();
  module.def(
      "set_log_level",
      [](const std::string& level) { saker::set_log_level(level); },
      nanobind::arg("level")
  );
  saker::python::translate_errors();
  saker::python::bind_generate(module);
  saker::python::bind_scores(module);
  saker::python::bind_model(module);
  saker::python::bind_convert(module);
  saker::python::bind_inspect(module);
  saker::python::bind_pull(module);
}

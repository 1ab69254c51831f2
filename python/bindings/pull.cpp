// SPDX-License-Identifier: Apache-2.0
#include "python/bindings/pull.h"

#include "saker/hub/missing_model.h"
#include "saker/hub/pull.h"
#include "saker/load/files/named_models.h"

#include "python/bindings/text.h"
#include "python/bindings/waiting.h"
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <functional>
#include <future>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace saker::python {
namespace {

using hub::FileProgress;
using hub::PullReport;

// The pull's thread calls Python; what that raises ends the pull.
std::function<void(std::span<const FileProgress>)> calling(const nb::object& on_progress) {
  if (on_progress.is_none()) {
    return {};
  }
  return [on_progress](std::span<const FileProgress> files) {
    std::uintmax_t done = 0;
    std::uintmax_t total = 0;
    for (const FileProgress& file : files) {
      done += file.done;
      total += file.total;
    }
    const nb::gil_scoped_acquire acquire;
    on_progress(done, total);
  };
}

PullReport pull(
    const nb::str& given,
    std::vector<std::string> include,
    int parallel,
    const nb::object& on_progress
) {
  const std::string text = utf8_of(given, "name");
  const hub::ModelName name = hub::require_model_name(text);
  std::stop_source stop;
  const hub::PullOptions options{
      .cache = {},
      .include = std::move(include),
      .parallel = parallel,
      .progress = calling(on_progress),
      .stop = stop.get_token(),
  };
  auto report = std::async(std::launch::async, [&] { return hub::pull(name, options); });
  return wait_for(report, stop);
}

}  // namespace

void bind_pull(nb::module_& module) {
  nb::class_<PullReport>(module, "PullReport", "What a pull left in the cache.")
      .def_ro("repo", &PullReport::repo)
      .def_ro("revision", &PullReport::revision)
      .def_ro("commit", &PullReport::commit)
      .def_prop_ro(
          "path",
          [](const PullReport& self) { return self.path.string(); },
          "What to load: the folder, or a GGUF file in it."
      )
      .def_ro("files", &PullReport::files, "Their paths in the folder, sorted.")
      .def_ro("bytes", &PullReport::bytes, "Of all of them.")
      .def_ro("received", &PullReport::received, "Of these over the network.");
  module.def(
      "pull",
      pull,
      nb::arg("name"),
      nb::arg("include"),
      nb::arg("parallel"),
      nb::arg("on_progress").none()
  );
  module.def(
      "is_missing",
      [](const nb::str& given) {
        const std::string name = utf8_of(given, "name");
        return hub::missing_model(name).has_value() && !load::find_named_model(name);
      },
      nb::arg("name"),
      "Whether it is neither a path nor a named model nor in the cache, and can be pulled."
  );
}

}  // namespace saker::python

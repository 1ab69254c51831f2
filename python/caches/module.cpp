// SPDX-License-Identifier: Apache-2.0
// The extension module saker._caches: the cache classes. People use it as saker.caches.
#include "saker/caches/prompt_cache.h"

#include "python/bindings/errors.h"
#include "python/caches/bind.h"
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <filesystem>
#include <optional>

namespace nb = nanobind;

namespace saker::python {
namespace {

using caches::PromptCache;

void bind_files(nb::module_& module) {
  module.def(
      "shares_arrays",
      [] { return nb::type<mx::array>().is_valid(); },
      "True if arrays of mlx.core pass as they are."
  );
  module.def(
      "make_prompt_cache",
      &caches::make_prompt_cache,
      nb::arg("layers"),
      nb::arg("window") = nb::none()
  );
  module.def(
      "from_state",
      [](const std::string& name, const nb::object& state) { return from_state_of(name, state); },
      nb::arg("class_name"),
      nb::arg("state").none()
  );
  module.def(
      "can_trim_prompt_cache",
      [](const PromptCache& cache) {
        check_no_none(cache);
        return caches::can_trim_prompt_cache(cache);
      },
      nb::arg("cache")
  );
  module.def(
      "trim_prompt_cache",
      [](const PromptCache& cache, int num_tokens) {
        check_no_none(cache);
        return caches::trim_prompt_cache(cache, num_tokens);
      },
      nb::arg("cache"),
      nb::arg("num_tokens")
  );
  module.def(
      "save_prompt_cache",
      [](const std::filesystem::path& file,
         const PromptCache& cache,
         const caches::Metadata& metadata) {
        // With the GIL: no other thread may change the caches meanwhile.
        check_no_none(cache);
        caches::save_prompt_cache(file, cache, metadata);
      },
      nb::arg("file"),
      nb::arg("cache"),
      nb::arg("metadata"),
      nb::sig("def save_prompt_cache(file: str | os.PathLike[str], cache: "
              "collections.abc.Sequence[Cache], "
              "metadata: collections.abc.Mapping[str, str]) -> None")
  );
  module.def(
      "load_prompt_cache",
      [](const std::filesystem::path& file) {
        caches::LoadedPromptCache loaded;
        {
          const nb::gil_scoped_release others_run;
          loaded = caches::load_prompt_cache(file);
        }
        return std::pair(std::move(loaded.caches), std::move(loaded.metadata));
      },
      nb::arg("file"),
      nb::sig("def load_prompt_cache(file: str | os.PathLike[str]) -> "
              "tuple[list[Cache], dict[str, str]]")
  );
}

}  // namespace
}  // namespace saker::python

// NOLINTNEXTLINE(performance-unnecessary-value-param): nanobind's macro declares it.
NB_MODULE(_caches, module) {
  saker::python::translate_errors();
  saker::python::bind_cache(module);
  saker::python::bind_rows(module);
  saker::python::bind_batches(module);
  saker::python::bind_collections(module);
  saker::python::bind_files(module);
}

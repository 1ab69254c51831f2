// SPDX-License-Identifier: Apache-2.0
#pragma once

// The parts of the extension module saker._caches. Its types live in nanobind's domain `mlx`, as
// mlx.core.array does: arrays pass both ways as handles.

#include "python/caches/values.h"
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

namespace saker::python {

void bind_cache(nanobind::module_& module);
void bind_rows(nanobind::module_& module);
void bind_batches(nanobind::module_& module);
void bind_collections(nanobind::module_& module);

// `signature` is the stub's: "def from_state(state: object) -> NAME".
template <typename Kind>
void bind_from_state(
    nanobind::class_<Kind, caches::Cache>& kind, const char* name, const char* signature
) {
  kind.def_static(
      "from_state",
      [name](const nanobind::object& state) { return from_state_of(name, state); },
      nanobind::arg("state").none(),
      nanobind::sig(signature),
      "A cache with the ``state`` of another one of this class, or of mlx-lm's class of this name."
  );
}

// Members of classes with keys and values.
template <typename Kind>
void bind_keys_and_values(nanobind::class_<Kind, caches::Cache>& kind) {
  kind.def_prop_ro(
          "keys",
          [](const Kind& self) { return nanobind::object(state_of(self)[0]); },
          nanobind::sig("def keys(self) -> typing.Any"),
          "The valid rows [B, H_kv, S, D], or their codes; None without rows."
  )
      .def_prop_ro(
          "values",
          [](const Kind& self) { return nanobind::object(state_of(self)[1]); },
          nanobind::sig("def values(self) -> typing.Any"),
          "The valid rows [B, H_kv, S, D_v], or their codes; None without rows."
      )
      .def(
          "keys_and_values",
          [](const Kind& self) {
            const nanobind::object state = state_of(self);
            return nanobind::make_tuple(state[0], state[1]);
          },
          nanobind::sig("def keys_and_values(self) -> tuple[typing.Any, typing.Any]"),
          "The rows that the last ``update_and_fetch`` returned."
      );
}

}  // namespace saker::python

// SPDX-License-Identifier: Apache-2.0
// The base of all classes: members that each of them has.
#include "saker/caches/cache_list.h"
#include "saker/caches/quantized.h"

#include "python/caches/bind.h"
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <variant>

namespace nb = nanobind;

namespace saker::python {
namespace {

using caches::Cache;
using caches::CacheList;
using caches::MaskForm;

nb::object quantized_rows(const caches::QuantizedRows& rows) {
  return nb::make_tuple(rows.weight, rows.scales, rows.biases);
}

nb::object update(Cache& self, const mx::array& keys, const mx::array& values) {
  if (auto* quantized = self.as_quantized()) {
    const auto rows = quantized->update_quantized(keys, values);
    return nb::make_tuple(quantized_rows(rows.keys), quantized_rows(rows.values));
  }
  auto rows = self.update(keys, values);
  return nb::make_tuple(std::move(rows.keys), std::move(rows.values));
}

nb::object offset(const Cache& self) {
  const caches::RopeOffset found = self.rope_offset();
  if (const auto* position = std::get_if<std::int64_t>(&found)) {
    return nb::int_(*position);
  }
  return nb::cast(std::get<mx::array>(found));
}

// Rows that a new one may see.
std::int64_t size(const Cache& self) {
  if (const CacheList* list = self.as_cache_list()) {
    std::int64_t largest = 0;
    for (const CachePtr& child : list->children()) {
      largest = std::max(largest, size(*child));
    }
    return largest;
  }
  return std::min<std::int64_t>(self.offset(), self.max_size().value_or(INT32_MAX));
}

void set_state(Cache& self, const nb::object& state) {
  const CachePtr other = from_state_of(self.kind(), state);
  self.from_serialized(other->state(), other->meta_state());
}

}  // namespace

void bind_cache(nb::module_& module) {
  nb::class_<Cache>(
      module,
      "Cache",
      "The base of all cache classes. One thread at a time may use a cache. A call that fails "
      "leaves it as before."
  )
      .def(
          "update_and_fetch",
          &update,
          nb::arg("keys"),
          nb::arg("values"),
          nb::sig("def update_and_fetch(self, keys: mlx.core.array, values: mlx.core.array) -> "
                  "tuple[typing.Any, typing.Any]"),
          "Appends rows, ``keys`` [B, H_kv, n, D] and ``values`` [B, H_kv, n, D_v], and returns "
          "all "
          "that attention reads:\nkeys and values, in quantized classes each as a tuple (weight, "
          "scales, biases)."
      )
      .def_prop_ro(
          "offset",
          &offset,
          nb::sig("def offset(self) -> typing.Any"),
          "The next row's position; in batch classes an array, int32 [B]."
      )
      .def_prop_rw(
          "state",
          &state_of,
          &set_state,
          nb::for_getter(nb::sig("def state(self) -> typing.Any")),
          nb::for_setter(nb::sig("def state(self, state: typing.Any, /) -> None")),
          "The tuple that mlx-lm 0.32.2 has: arrays of the valid rows, then positions and bounds. "
          "Setting checks and copies it."
      )
      .def_prop_ro(
          "meta_state",
          &Cache::meta_state,
          "Positions and bounds as texts, in the order of older files of mlx-lm."
      )
      .def(
          "make_mask",
          [](const Cache& self, int n, std::optional<int> window_size, bool return_array) {
            return mask_object(
                self.make_mask(n, window_size, return_array ? MaskForm::kArray : MaskForm::kAny)
            );
          },
          nb::arg("N"),
          nb::arg("window_size") = nb::none(),
          nb::arg("return_array") = false,
          nb::sig("def make_mask(self, N: int, window_size: int | None = None, return_array: bool "
                  "= False) -> mlx.core.array | str | None"),
          "The mask of ``N`` new rows, before they are appended: None, \"causal\", or a boolean "
          "array."
      )
      .def("is_trimmable", &Cache::is_trimmable, "True if ``trim`` can drop rows now.")
      .def(
          "trim",
          &Cache::trim,
          nb::arg("n"),
          "Drops up to ``n`` of the last rows and returns how many."
      )
      .def("size", &size, "Number of rows that stay visible.")
      .def("empty", &Cache::is_empty, "True if no rows were ever appended.")
      .def_prop_ro("nbytes", &Cache::nbytes, "Bytes of the allocated rows, used or not.")
      .def("materialize", &Cache::materialize, "Evaluates the cache's own arrays.")
      .def(
          "__copy__",
          [](const Cache& self) { return CachePtr(self.copy()); },
          nb::sig("def __copy__(self) -> typing.Self")
      )
      .def(
          "__deepcopy__",
          [](const Cache& self, const nb::object&) { return CachePtr(self.copy()); },
          nb::arg("memo"),
          nb::sig("def __deepcopy__(self, memo: object) -> typing.Self"),
          "An independent cache of the same rows; memory is shared until one of them writes."
      );
}

}  // namespace saker::python

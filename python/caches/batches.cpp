// SPDX-License-Identifier: Apache-2.0
// Classes of padded sequences: batch rows with positions of their own.
#include "saker/caches/batch.h"
#include "saker/caches/batch_rotating.h"

#include "python/caches/bind.h"

#include <memory>

namespace nb = nanobind;

namespace saker::python {
namespace {

using caches::BatchKVCache;
using caches::BatchRotatingKVCache;
using caches::Cache;
using caches::KVCache;
using caches::Padding;
using caches::RotatingKVCache;

// Members that both classes have; `Single` is the class of one batch row.
template <typename Batch, typename Single>
void bind_batch(nb::class_<Batch, Cache>& kind) {
  kind.def_prop_ro(
          "left_padding",
          [](const Batch& self) { return positions(self.left_padding()); },
          nb::sig("def left_padding(self) -> mlx.core.array"),
          "Number of padding rows of each batch row, int32 [B]."
  )
      .def(
          "prepare",
          [](Batch& self,
             const nb::object& left_padding,
             const nb::object& lengths,
             const nb::object& right_padding) {
            self.prepare({
                .left = integers_or_none(left_padding, "left_padding"),
                .right = integers_or_none(right_padding, "right_padding"),
                .lengths = integers_or_none(lengths, "lengths"),
            });
          },
          nb::kw_only(),
          nb::arg("left_padding") = nb::none(),
          nb::arg("lengths") = nb::none(),
          nb::arg("right_padding") = nb::none(),
          nb::sig(
              "def prepare(self, *, left_padding: collections.abc.Sequence[int] | mlx.core.array | "
              "None = "
              "None, lengths: collections.abc.Sequence[int] | mlx.core.array | None = None, "
              "right_padding: collections.abc.Sequence[int] | mlx.core.array | None = None) -> None"
          ),
          "The padding of prompts with different lengths: on the left before the first rows, or on "
          "the right until ``finalize``."
      )
      .def("finalize", &Batch::finalize, "Right padding becomes left padding.")
      .def(
          "filter",
          [](Batch& self, const nb::object& batch_indices) {
            self.filter(integers(batch_indices, "batch_indices"));
          },
          nb::arg("batch_indices"),
          nb::sig("def filter(self, batch_indices: collections.abc.Sequence[int] | mlx.core.array) "
                  "-> None"),
          "Keeps these batch rows, in this order."
      )
      .def("extend", &Batch::extend, nb::arg("other"), "Appends the other's batch rows.")
      .def(
          "extract",
          [](const Batch& self, int idx) { return std::make_shared<Single>(self.extract(idx)); },
          nb::arg("idx"),
          "A cache of one batch row, without its padding."
      )
      .def_static(
          "merge",
          [](const std::vector<Single*>& caches) {
            check_caches(caches);
            const std::vector<const Single*> all(caches.begin(), caches.end());
            return std::make_shared<Batch>(Batch::merge(all));
          },
          nb::arg("caches"),
          "A batch of these sequences, each of one batch row."
      );
}

}  // namespace

void bind_batches(nb::module_& module) {
  nb::class_<BatchKVCache, Cache> batch(
      module,
      "BatchKVCache",
      "Keeps every row of several sequences. Batch row b begins with ``left_padding[b]`` rows of "
      "padding."
  );
  batch.def(
      "__init__",
      [](BatchKVCache* self, const nb::object& left_padding) {
        new (self) BatchKVCache(integers(left_padding, "left_padding"));
      },
      nb::arg("left_padding"),
      nb::sig(
          "def __init__(self, left_padding: collections.abc.Sequence[int] | mlx.core.array) -> None"
      )
  );
  bind_batch<BatchKVCache, KVCache>(batch);
  bind_keys_and_values(batch);
  bind_from_state(batch, "BatchKVCache", "def from_state(state: object) -> BatchKVCache");

  nb::class_<BatchRotatingKVCache, Cache> ring(
      module,
      "BatchRotatingKVCache",
      "Keeps the newest ``max_size`` rows of several sequences. Batch row b begins with "
      "``left_padding[b]`` rows of padding."
  );
  ring.def(
          "__init__",
          [](BatchRotatingKVCache* self, int max_size, const nb::object& left_padding) {
            new (self) BatchRotatingKVCache(max_size, integers(left_padding, "left_padding"));
          },
          nb::arg("max_size"),
          nb::arg("left_padding"),
          nb::sig("def __init__(self, max_size: int, left_padding: collections.abc.Sequence[int] | "
                  "mlx.core.array) "
                  "-> None")
  )
      .def_prop_ro("max_size", [](const BatchRotatingKVCache& self) { return *self.max_size(); });
  bind_batch<BatchRotatingKVCache, RotatingKVCache>(ring);
  bind_keys_and_values(ring);
  bind_from_state(
      ring, "BatchRotatingKVCache", "def from_state(state: object) -> BatchRotatingKVCache"
  );
}

}  // namespace saker::python

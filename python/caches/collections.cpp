// SPDX-License-Identifier: Apache-2.0
// Slots of arrays, and lists of caches.
#include "saker/caches/arrays.h"
#include "saker/caches/cache_list.h"

#include "python/caches/bind.h"
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>

namespace nb = nanobind;

namespace saker::python {
namespace {

using caches::ArraysCache;
using caches::Cache;
using caches::CacheList;

// Python's index, which counts from the end if below 0. Throws IndexError.
std::size_t index_of(int index, std::size_t size) {
  const int count = static_cast<int>(size);
  const int found = index < 0 ? index + count : index;
  if (found < 0 || found >= count) {
    throw nb::index_error("index out of range");
  }
  return static_cast<std::size_t>(found);
}

nb::object positions_or_none(const std::vector<int>& values) {
  return values.empty() ? nb::none() : nb::cast(positions(values));
}

using ArraysClass = nb::class_<ArraysCache, Cache>;

void bind_slots(ArraysClass& kind) {
  kind.def(
          "__getitem__",
          [](const ArraysCache& self, int idx) {
            return self.get(index_of(idx, self.slot_count()));
          },
          nb::arg("idx"),
          nb::sig("def __getitem__(self, idx: int) -> mlx.core.array | None")
  )
      .def(
          "__setitem__",
          [](ArraysCache& self, int idx, const mx::array& value) {
            self.set(index_of(idx, self.slot_count()), value);
          },
          nb::arg("idx"),
          nb::arg("value"),
          nb::sig("def __setitem__(self, idx: int, value: mlx.core.array) -> None")
      )
      .def_prop_ro("batch_size", &ArraysCache::batch_size)
      .def_prop_ro(
          "left_padding",
          [](const ArraysCache& self) { return positions_or_none(self.left_padding()); },
          nb::sig("def left_padding(self) -> mlx.core.array | None"),
          "int32 [B]"
      )
      .def_prop_ro(
          "lengths",
          [](const ArraysCache& self) { return positions_or_none(self.lengths()); },
          nb::sig("def lengths(self) -> mlx.core.array | None"),
          "int32 [B]"
      );
}

// Members for several sequences.
void bind_batch(ArraysClass& kind) {
  kind.def(
          "prepare",
          [](ArraysCache& self, const nb::object& lengths, const nb::kwargs&) {
            self.prepare(integers_or_none(lengths, "lengths"));
          },
          nb::arg("lengths") = nb::none(),
          nb::arg("kwargs"),
          nb::sig("def prepare(self, lengths: collections.abc.Sequence[int] | mlx.core.array | "
                  "None = None, "
                  "**kwargs: object) -> None"),
          "The length of each right-padded batch row, until ``finalize``. Padding itself is not "
          "needed, and ignored."
  )
      .def("finalize", &ArraysCache::finalize, "Clears lengths and left padding.")
      .def(
          "advance",
          &ArraysCache::advance,
          nb::arg("N"),
          "Shortens lengths and left padding after ``N`` rows."
      )
      .def(
          "filter",
          [](ArraysCache& self, const nb::object& batch_indices) {
            self.filter(integers(batch_indices, "batch_indices"));
          },
          nb::arg("batch_indices"),
          nb::sig("def filter(self, batch_indices: collections.abc.Sequence[int] | mlx.core.array) "
                  "-> None"),
          "Keeps these batch rows, in this order."
      )
      .def("extend", &ArraysCache::extend, nb::arg("other"), "Appends the other's batch rows.")
      .def(
          "extract",
          [](const ArraysCache& self, int idx) {
            return std::make_shared<ArraysCache>(self.extract(idx));
          },
          nb::arg("idx"),
          "A cache of one batch row."
      )
      .def_static(
          "merge",
          [](const std::vector<ArraysCache*>& caches) {
            check_caches(caches);
            const std::vector<const ArraysCache*> all(caches.begin(), caches.end());
            return std::make_shared<ArraysCache>(ArraysCache::merge(all));
          },
          nb::arg("caches"),
          "A batch of the first batch row of each cache."
      );
}

void bind_arrays(nb::module_& module) {
  ArraysClass kind(
      module,
      "ArraysCache",
      "``size`` slots for arrays [B, ...] that a layer replaces as a whole: states of recurrences "
      "and convolutions.\n``cache[i]`` is the array of a slot or None."
  );
  kind.def(
      "__init__",
      [](ArraysCache* self, std::size_t size, const nb::object& left_padding) {
        new (self) ArraysCache(size, integers_or_none(left_padding, "left_padding"));
      },
      nb::arg("size"),
      nb::arg("left_padding") = nb::none(),
      nb::sig("def __init__(self, size: int, left_padding: collections.abc.Sequence[int] | "
              "mlx.core.array | None = "
              "None) -> None")
  );
  bind_slots(kind);
  bind_batch(kind);
  bind_from_state(kind, "ArraysCache", "def from_state(state: object) -> ArraysCache");
}

// Calls a member of each child, in Python, where its class has it.
void each_child(const CacheList& self, const auto& call) {
  for (const CachePtr& child : self.children()) {
    call(nb::cast(child));
  }
}

std::shared_ptr<CacheList> list_of(std::vector<CachePtr> children) {
  return std::make_shared<CacheList>(std::move(children));
}

void extend_list(CacheList& self, const CacheList& other) {
  require(
      self.children().size() == other.children().size(),
      ErrorCode::kInvalidArgument,
      "[CacheList] {} caches extended by {}",
      self.children().size(),
      other.children().size()
  );
  for (std::size_t i = 0; i < self.children().size(); ++i) {
    nb::cast(self.children()[i]).attr("extend")(other.children()[i]);
  }
}

std::shared_ptr<CacheList> merged_list(const std::vector<std::shared_ptr<CacheList>>& lists) {
  check_caches(lists);
  const std::size_t count = lists.front()->children().size();
  std::vector<CachePtr> children;
  for (std::size_t i = 0; i < count; ++i) {
    nb::list all;
    for (const auto& list : lists) {
      require(
          list->children().size() == count,
          ErrorCode::kInvalidArgument,
          "[CacheList] {} caches merged with {}",
          list->children().size(),
          count
      );
      all.append(list->children()[i]);
    }
    children.push_back(nb::cast<CachePtr>(all[0].attr("merge")(all)));
  }
  return list_of(std::move(children));
}

void bind_list(nb::module_& module) {
  nb::class_<CacheList, Cache> kind(
      module,
      "CacheList",
      "Several caches of one layer, or lists of caches. Append rows to its children, not to it."
  );
  kind.def(
          "__init__",
          [](CacheList* self, const nb::args& caches) {
            std::vector<CachePtr> children;
            if (!nb::try_cast(caches, children)) {
              throw nb::type_error("CacheList: expected caches");
            }
            check_no_none(children);
            new (self) CacheList(std::move(children));
          },
          nb::arg("caches"),
          nb::sig("def __init__(self, *caches: Cache) -> None")
  )
      .def(
          "__getitem__",
          [](const CacheList& self, int idx) {
            return self.children()[index_of(idx, self.children().size())];
          },
          nb::arg("idx")
      )
      .def_prop_ro(
          "caches",
          [](const CacheList& self) { return nb::tuple(nb::cast(self.children())); },
          nb::sig("def caches(self) -> tuple[Cache, ...]"),
          "The children."
      )
      .def(
          "prepare",
          [](const CacheList& self, const nb::kwargs& padding) {
            each_child(self, [&](const nb::object& child) { child.attr("prepare")(**padding); });
          },
          nb::arg("kwargs"),
          nb::sig("def prepare(self, **kwargs: object) -> None"),
          "Prepares all children."
      )
      .def(
          "finalize",
          [](const CacheList& self) {
            each_child(self, [](const nb::object& child) { child.attr("finalize")(); });
          },
          "Finalizes all children."
      )
      .def(
          "filter",
          [](const CacheList& self, const nb::object& indices) {
            each_child(self, [&](const nb::object& child) { child.attr("filter")(indices); });
          },
          nb::arg("batch_indices"),
          nb::sig("def filter(self, batch_indices: collections.abc.Sequence[int] | mlx.core.array) "
                  "-> None"),
          "Keeps these batch rows of all children, in this order."
      )
      .def(
          "extend",
          &extend_list,
          nb::arg("other"),
          "Appends the batch rows of the other's children."
      )
      .def(
          "extract",
          [](const CacheList& self, int idx) {
            std::vector<CachePtr> children;
            each_child(self, [&](const nb::object& child) {
              children.push_back(nb::cast<CachePtr>(child.attr("extract")(idx)));
            });
            return list_of(std::move(children));
          },
          nb::arg("idx"),
          "A list of the children's caches of one batch row."
      )
      .def_static("merge", &merged_list, nb::arg("caches"), "A list of the merged children.");
  bind_from_state(kind, "CacheList", "def from_state(state: object) -> CacheList");
}

}  // namespace

void bind_collections(nb::module_& module) {
  bind_arrays(module);
  bind_list(module);
}

}  // namespace saker::python

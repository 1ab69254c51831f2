// SPDX-License-Identifier: Apache-2.0
// Classes of one sequence, or of several with the same positions.
#include "saker/caches/batch.h"
#include "saker/caches/batch_rotating.h"
#include "saker/caches/kv.h"
#include "saker/caches/quantized.h"
#include "saker/caches/rotating.h"

#include "python/caches/bind.h"
#include <nanobind/stl/optional.h>

#include <memory>
#include <optional>

namespace nb = nanobind;

namespace saker::python {
namespace {

using caches::BatchKVCache;
using caches::BatchRotatingKVCache;
using caches::Cache;
using caches::ChunkedKVCache;
using caches::KVCache;
using caches::Quantization;
using caches::QuantizedCache;
using caches::QuantizedKVCache;
using caches::QuantizedRotatingKVCache;
using caches::RotatingKVCache;

void bind_kv(nb::module_& module) {
  nb::class_<KVCache, Cache> kind(module, "KVCache", "Keeps every row.");
  kind.def(nb::init<>())
      .def(
          "to_quantized",
          [](const KVCache& self, int group_size, int bits) {
            return std::make_shared<QuantizedKVCache>(
                self.to_quantized({.group_size = group_size, .bits = bits})
            );
          },
          nb::arg("group_size") = 64,
          nb::arg("bits") = 4,
          "A QuantizedKVCache of the same rows."
      )
      .def_static(
          "merge",
          [](const std::vector<KVCache*>& caches) {
            check_caches(caches);
            const std::vector<const KVCache*> all(caches.begin(), caches.end());
            return std::make_shared<BatchKVCache>(BatchKVCache::merge(all));
          },
          nb::arg("caches"),
          "A BatchKVCache of these sequences, each of one batch row."
      );
  bind_keys_and_values(kind);
  bind_from_state(kind, "KVCache", "def from_state(state: object) -> KVCache");
}

void bind_rotating(nb::module_& module) {
  nb::class_<RotatingKVCache, Cache> kind(
      module,
      "RotatingKVCache",
      "Keeps ``max_size`` rows: the first ``keep`` of the sequence and the newest ones."
  );
  kind.def(nb::init<int, int>(), nb::arg("max_size"), nb::arg("keep") = 0)
      .def_prop_ro("max_size", [](const RotatingKVCache& self) { return *self.max_size(); })
      .def_prop_ro("keep", &RotatingKVCache::keep)
      .def(
          "to_quantized",
          [](const RotatingKVCache& self, int group_size, int bits) {
            return std::make_shared<QuantizedRotatingKVCache>(
                self.to_quantized({.group_size = group_size, .bits = bits})
            );
          },
          nb::arg("group_size") = 64,
          nb::arg("bits") = 4,
          "A QuantizedRotatingKVCache of the same rows; mlx-lm has none."
      )
      .def_static(
          "merge",
          [](const std::vector<RotatingKVCache*>& caches) {
            check_caches(caches);
            const std::vector<const RotatingKVCache*> all(caches.begin(), caches.end());
            return std::make_shared<BatchRotatingKVCache>(BatchRotatingKVCache::merge(all));
          },
          nb::arg("caches"),
          "A BatchRotatingKVCache of these sequences, each of one batch row and the same "
          "``max_size``."
      );
  bind_keys_and_values(kind);
  bind_from_state(kind, "RotatingKVCache", "def from_state(state: object) -> RotatingKVCache");
}

void bind_chunked(nb::module_& module) {
  nb::class_<ChunkedKVCache, Cache> kind(
      module,
      "ChunkedKVCache",
      "For layers that attend within chunks (Llama 4): rows before the current chunk can be "
      "dropped."
  );
  kind.def(nb::init<std::optional<int>>(), nb::arg("chunk_size").none())
      .def_prop_ro("chunk_size", &ChunkedKVCache::chunk_size)
      .def_prop_ro(
          "start_position", &ChunkedKVCache::start_position, "The position of the first row held."
      )
      .def(
          "maybe_trim_front",
          &ChunkedKVCache::maybe_trim_front,
          "Drops first rows so that at most ``chunk_size`` stay."
      );
  bind_keys_and_values(kind);
  bind_from_state(kind, "ChunkedKVCache", "def from_state(state: object) -> ChunkedKVCache");
}

constexpr const char* kModeDoc = "MLX's name of the format, for ``mx.quantized_matmul``.";

void bind_quantized(nb::module_& module) {
  nb::class_<QuantizedKVCache, Cache> kind(
      module, "QuantizedKVCache", "Keeps every row, quantized as ``mx.quantize`` does."
  );
  kind.def(
          "__init__",
          [](QuantizedKVCache* self, int group_size, int bits) {
            new (self) QuantizedKVCache({.group_size = group_size, .bits = bits});
          },
          nb::arg("group_size") = 64,
          nb::arg("bits") = 8
  )
      .def_prop_ro("group_size", &QuantizedKVCache::group_size)
      .def_prop_ro("bits", &QuantizedKVCache::bits)
      .def_prop_ro("mode", &QuantizedKVCache::mode, kModeDoc);
  bind_keys_and_values(kind);
  bind_from_state(kind, "QuantizedKVCache", "def from_state(state: object) -> QuantizedKVCache");

  nb::class_<QuantizedRotatingKVCache, Cache> ring(
      module,
      "QuantizedRotatingKVCache",
      "A RotatingKVCache of quantized rows. mlx-lm has no such class and does not read files with "
      "it."
  );
  ring.def(
          "__init__",
          [](QuantizedRotatingKVCache* self, int max_size, int keep, int group_size, int bits) {
            new (self)
                QuantizedRotatingKVCache(max_size, keep, {.group_size = group_size, .bits = bits});
          },
          nb::arg("max_size"),
          nb::arg("keep") = 0,
          nb::arg("group_size") = 64,
          nb::arg("bits") = 8
  )
      .def_prop_ro(
          "max_size", [](const QuantizedRotatingKVCache& self) { return *self.max_size(); }
      )
      .def_prop_ro("keep", &QuantizedRotatingKVCache::keep)
      .def_prop_ro("group_size", &QuantizedRotatingKVCache::group_size)
      .def_prop_ro("bits", &QuantizedRotatingKVCache::bits)
      .def_prop_ro("mode", &QuantizedRotatingKVCache::mode, kModeDoc);
  bind_keys_and_values(ring);
  bind_from_state(
      ring, "QuantizedRotatingKVCache", "def from_state(state: object) -> QuantizedRotatingKVCache"
  );
}

}  // namespace

void bind_rows(nb::module_& module) {
  bind_kv(module);
  bind_rotating(module);
  bind_chunked(module);
  bind_quantized(module);
}

}  // namespace saker::python

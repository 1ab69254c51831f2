// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/serialized_rows.h"

#include "saker/base/error.h"
#include "saker/cache/host_arrays.h"
#include "saker/cache/recurrent.h"
#include "saker/cache/serialized_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace saker::cache {
namespace {

constexpr int kRowAxis = 2;

mx::array rows_of(const mx::array& array, std::int64_t first, std::int64_t last) {
  mx::Shape begin(array.ndim(), 0);
  mx::Shape end = array.shape();
  begin[kRowAxis] = static_cast<int>(first);
  end[kRowAxis] = static_cast<int>(last);
  return mx::slice(array, std::move(begin), std::move(end));
}

// Rows at `offset`, oldest first: keys and values, or the parts of their codes, [1, H_kv, S, ...]
// each. A bounded cache needs only some of them.
struct TimeOrder {
  std::int64_t offset = 0;
  std::vector<mx::array> parts;

  // Keeps the first `keep` and the newest rows, `count` in all.
  void bound(std::int64_t keep, std::int64_t count) {
    for (mx::array& part : parts) {
      const std::int64_t rows = part.shape(kRowAxis);
      auto newest = rows_of(part, rows - (count - keep), rows);
      part = keep == 0 ? newest : mx::concatenate({rows_of(part, 0, keep), newest}, kRowAxis);
    }
  }
};

// A ring's rows, oldest first: the first `keep`, then from idx around to idx.
mx::array unrolled(const mx::array& ring, std::int64_t keep, std::int64_t idx) {
  const std::int64_t rows = ring.shape(kRowAxis);
  if (idx == rows) {
    return ring;
  }
  return mx::concatenate(
      {rows_of(ring, 0, keep), rows_of(ring, idx, rows), rows_of(ring, keep, idx)}, kRowAxis
  );
}

bool is_quantized(std::string_view kind) {
  return kind.starts_with("Quantized");
}

// Text of the last two meta values of a quantized kind.
std::string quantization(const std::vector<std::string>& meta) {
  return fmt::format("{} bits in groups of {}", meta.back(), meta[meta.size() - 2]);
}

void require_same(bool same, const LayerCache& layer, const SerializedCache& serialized) {
  require(
      same,
      ErrorCode::kInvalidArgument,
      "got a {} ({}), expected a {} ({})",
      serialized.kind,
      fmt::join(serialized.meta, ", "),
      layer.kind(),
      fmt::join(layer.meta_state(), ", ")
  );
}

std::int64_t meta_at(const std::vector<std::string>& meta, std::size_t index) {
  return meta_integer(meta.at(index), "cache");
}

SerializedPages pages_of(const LayerCache& layer) {
  SerializedPages pages;
  const auto snapshot = layer.snapshot(0);
  std::size_t bytes = 0;
  snapshot->for_each_block([&](const kernels::KvBlock& block) {
    pages.pages.push_back({block.index, static_cast<std::int64_t>(block.bytes)});
    bytes += block.bytes;
  });
  const auto memory = std::make_shared<std::vector<std::byte>>();
  memory->reserve(bytes);
  snapshot->for_each_block([&](const kernels::KvBlock& block) {
    const auto* data = static_cast<const std::byte*>(block.data);
    memory->insert(memory->end(), data, data + block.bytes);
  });
  pages.bytes.dtype = DType::kUInt8;
  pages.bytes.shape = {static_cast<std::int64_t>(bytes)};
  pages.bytes.data = std::shared_ptr<const std::byte>(memory, memory->data());
  return pages;
}

// Replaces the layer's rows by pages; `offset` is the number of rows.
void take_pages(LayerCache& layer, const SerializedPages& pages, std::int64_t offset) {
  std::span<const std::byte> left(pages.bytes.data.get(), pages.bytes.nbytes());
  BlockSource source;
  for (const SerializedPages::Page& page : pages.pages) {
    source.blocks.push_back({page.index, static_cast<std::size_t>(page.bytes)});
  }
  source.read = [&](std::span<std::byte> block) {
    require(
        block.size() <= left.size(),
        ErrorCode::kCorruptData,
        "pages end {} bytes early",
        block.size() - left.size()
    );
    std::memcpy(block.data(), left.data(), block.size());
    left = left.subspan(block.size());
  };
  const auto snapshot = layer.snapshot_of(source, 0, offset);
  require(
      left.empty() && layer.restore(snapshot.get(), offset),
      ErrorCode::kCorruptData,
      "{} pages, which are not those of {} rows",
      pages.pages.size(),
      offset
  );
}

}  // namespace

SerializedCache serialize(const LayerCache& layer) {
  if (const auto* state = dynamic_cast<const RecurrentCache*>(&layer)) {
    return serialize_state(*state);
  }
  SerializedCache serialized;
  serialized.kind = canonical_kind(layer.kind());
  serialized.meta = layer.meta_state();
  if (const auto codes = layer.quantized_view()) {
    serialized.pages = pages_of(layer);
    for (const auto* rows : {&codes->keys, &codes->values}) {
      for (const auto* part : {&rows->codes, &rows->scales, &rows->biases}) {
        serialized.state.push_back(to_tensor(*part));
      }
    }
  } else if (const auto rows = layer.view()) {
    serialized.state = {to_tensor(rows->keys), to_tensor(rows->values)};
  }
  return serialized;
}

std::vector<SerializedCache> serialize(const SequenceCache& cache) {
  std::vector<SerializedCache> layers;
  layers.reserve(static_cast<std::size_t>(cache.layer_count()));
  for (int i = 0; i < cache.layer_count(); ++i) {
    layers.push_back(serialize(cache.layer(i)));
  }
  return layers;
}

void restore(LayerCache& layer, const SerializedCache& serialized) {
  check_serialized(serialized);
  const auto own = layer.meta_state();
  const bool codes = is_quantized(serialized.kind);
  const bool ring = serialized.kind.ends_with("RotatingKVCache");
  const bool bounded = layer.max_size().has_value();
  if (ring) {
    require_same(
        bounded && serialized.meta[0] == own[0] && serialized.meta[1] == own[1], layer, serialized
    );
  } else {
    // A full cache fits only a layer without pinned rows: its window is surely the model's own.
    const bool full = serialized.kind == "KVCache" || serialized.kind == "QuantizedKVCache";
    require_same(full && (!bounded || meta_at(own, 0) == 0), layer, serialized);
  }
  if (codes) {
    const std::string got = quantization(serialized.meta);
    const std::string expected = is_quantized(layer.kind()) ? quantization(own) : "16 bits";
    require(
        got == expected,
        ErrorCode::kInvalidArgument,
        "rows of {}, expected rows of {} (kv_bits)",
        got,
        expected
    );
  }
  if (serialized.state.empty()) {
    layer.assign(0, std::nullopt);
    return;
  }
  if (serialized.pages) {
    const std::size_t offset_at = ring ? 2 : 0;
    take_pages(layer, *serialized.pages, meta_at(serialized.meta, offset_at));
    return;
  }
  TimeOrder rows;
  for (const Tensor& part : serialized.state) {
    rows.parts.push_back(to_array(part));
  }
  rows.offset = rows.parts.front().shape(kRowAxis);
  if (ring) {
    const std::int64_t keep = meta_at(serialized.meta, 0);
    const std::int64_t idx = meta_at(serialized.meta, 3);
    rows.offset = meta_at(serialized.meta, 2);
    for (mx::array& part : rows.parts) {
      part = unrolled(part, keep, idx);
    }
  }
  std::int64_t keep = 0;
  std::int64_t count = rows.offset;
  if (bounded) {
    keep = std::min(meta_at(own, 0), rows.offset);
    count = std::min(meta_at(own, 1), rows.offset);
  }
  rows.bound(keep, count);
  if (!codes) {
    layer.assign(rows.offset, KeyValues{rows.parts[0], rows.parts[1]});
    return;
  }
  const int bits = static_cast<int>(meta_integer(serialized.meta.back(), "bits"));
  const int group =
      static_cast<int>(meta_integer(serialized.meta[serialized.meta.size() - 2], "group_size"));
  const std::size_t half = rows.parts.size() / 2;
  require(
      rows.parts[1].dtype() != mx::uint8,
      ErrorCode::kInvalidArgument,
      "codes with bytes as scales, expected codes with scales and biases"
  );
  const auto codes_at = [&](std::size_t first) {
    const mx::array& scales = rows.parts[first + 1];
    auto biases = half == 3 ? rows.parts[first + 2] : mx::zeros_like(scales);  // None are 0.
    return kernels::QuantizedRows{rows.parts[first], scales, std::move(biases), bits, group};
  };
  layer.assign(rows.offset, QuantizedKeyValues{codes_at(0), codes_at(half)});
}

SequenceCache restored(SequenceCache empty, const std::vector<SerializedCache>& layers) {
  require(
      std::cmp_equal(layers.size(), empty.layer_count()),
      ErrorCode::kInvalidArgument,
      "a cache of {} layers, expected {}",
      layers.size(),
      empty.layer_count()
  );
  std::optional<std::int64_t> offset;  // Offset of the layers that know it.
  const auto each_layer = [&](const auto& function) {
    for (int i = 0; i < empty.layer_count(); ++i) {
      try {
        function(empty.layer(i), layers[static_cast<std::size_t>(i)]);
      } catch (const Error& error) {
        throw Error(error.code(), fmt::format("layer {}: {}", i, error.what()));
      }
    }
  };
  each_layer([&](LayerCache& layer, const SerializedCache& serialized) {
    if (dynamic_cast<RecurrentCache*>(&layer) != nullptr) {
      return;
    }
    restore(layer, serialized);
    offset = offset.value_or(layer.offset());
  });
  require(offset.has_value(), ErrorCode::kUnsupported, "states alone, which say no offset");
  each_layer([&](LayerCache& layer, const SerializedCache& serialized) {
    if (auto* state = dynamic_cast<RecurrentCache*>(&layer)) {
      restore_state(*state, serialized, *offset);
    }
  });
  for (int i = 0; i < empty.layer_count(); ++i) {
    require(
        empty.layer(i).offset() == empty.offset(),
        ErrorCode::kInvalidArgument,
        "layer {} is at offset {}, layer 0 at {}",
        i,
        empty.layer(i).offset(),
        empty.offset()
    );
  }
  return empty;
}

}  // namespace saker::cache

// SPDX-License-Identifier: Apache-2.0
// Checks the invariants of each kind's serialized form.
#include "saker/base/error.h"
#include "saker/cache/serialized.h"
#include "saker/cache/serialized_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::cache {
namespace {

constexpr std::size_t kRowDimension = 2;

void require_counts(
    const SerializedCache& cache, std::initializer_list<std::size_t> states, std::size_t metas
) {
  require_data(
      std::ranges::find(states, cache.state.size()) != states.end(),
      cache,
      fmt::format("got {} arrays, expected {}", cache.state.size(), fmt::join(states, " or "))
  );
  require_data(
      cache.meta.size() == metas,
      cache,
      fmt::format("got {} meta values, expected {}", cache.meta.size(), metas)
  );
}

bool is_float(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

std::string shape_of(const Tensor& tensor) {
  return fmt::format("[{}]", fmt::join(tensor.shape, ", "));
}

// Requires [B, H, L, *], small enough for MLX's 32-bit shapes.
void check_rank(const SerializedCache& cache, const Tensor& rows) {
  const bool fits = rows.shape.size() == 4 && std::ranges::all_of(rows.shape, [](auto size) {
                      return size > 0 && size <= std::numeric_limits<std::int32_t>::max();
                    });
  require_data(
      fits, cache, fmt::format("an array of shape {}, expected [B, H_kv, L, D]", shape_of(rows))
  );
}

// Checks that keys and values belong together; returns their number of rows.
std::int64_t check_rows(const SerializedCache& cache) {
  const Tensor& keys = cache.state[0];
  const Tensor& values = cache.state[1];
  for (const Tensor* rows : {&keys, &values}) {
    check_rank(cache, *rows);
    require_data(
        is_float(rows->dtype),
        cache,
        fmt::format("rows of dtype {}, expected F32, F16 or BF16", dtype_name(rows->dtype))
    );
  }
  require_data(
      std::equal(keys.shape.begin(), keys.shape.begin() + 3, values.shape.begin()),
      cache,
      fmt::format("keys {} and values {} do not belong together", shape_of(keys), shape_of(values))
  );
  return keys.shape[kRowDimension];
}

// Checks the first four meta values of a ring with `rows` rows.
void check_ring(const SerializedCache& cache, std::int64_t rows) {
  const std::int64_t keep = integer(cache, 0, "keep");
  const std::int64_t max_size = integer(cache, 1, "max_size");
  const std::int64_t offset = integer(cache, 2, "offset");
  const std::int64_t idx = integer(cache, 3, "idx");
  // A ring without a size yet has no rows.
  const bool sizeless = keep == 0 && max_size == 0 && cache.state.empty();
  require_data(
      sizeless || (keep >= 0 && keep < max_size),
      cache,
      fmt::format("max_size is {} and keep {}, expected 0 <= keep < max_size", max_size, keep)
  );
  if (cache.state.empty()) {
    require_data(
        offset == 0 && idx == 0,
        cache,
        fmt::format("offset is {} and idx {} without rows, expected 0", offset, idx)
    );
    return;
  }
  require_data(
      offset >= rows && rows >= std::min(offset, max_size),
      cache,
      fmt::format("{} rows at offset {} with max_size {}", rows, offset, max_size)
  );
  require_data(
      idx == rows || (rows == max_size && idx >= keep && idx < rows),
      cache,
      fmt::format("idx is {} with {} rows, max_size {} and keep {}", idx, rows, max_size, keep)
  );
}

void check_rotating(const SerializedCache& cache) {
  require_counts(cache, {0, 2}, 4);
  check_ring(cache, cache.state.empty() ? 0 : check_rows(cache));
}

void check_chunked(const SerializedCache& cache) {
  require_counts(cache, {0, 2}, 2);
  if (cache.meta[0] != "None") {
    const std::int64_t chunk_size = integer(cache, 0, "chunk_size");
    require_data(chunk_size >= 0, cache, fmt::format("chunk_size is {}", chunk_size));
  }
  const std::int64_t start = integer(cache, 1, "start_position");
  require_data(start >= 0, cache, fmt::format("start_position is {}", start));
  if (!cache.state.empty()) {
    const std::int64_t rows = check_rows(cache);
    require_data(
        start <= std::numeric_limits<std::int32_t>::max() - rows,
        cache,
        fmt::format("start_position is {} with {} rows", start, rows)
    );
  }
}

// MLX's float formats, whose scales are bytes: nvfp4, mxfp4 and mxfp8.
bool has_byte_scales(std::int64_t group, std::int64_t bits) {
  return (group == 16 && bits == 4) || (group == 32 && (bits == 4 || bits == 8));
}

// Checks weight, scales and optional biases of either keys or values.
void check_codes_of(
    const SerializedCache& cache, std::span<const Tensor> parts, std::int64_t group, int bits
) {
  for (const Tensor& part : parts) {
    check_rank(cache, part);
    require_data(
        std::equal(part.shape.begin(), part.shape.begin() + 3, cache.state[0].shape.begin()),
        cache,
        fmt::format("parts of shapes {} and {}", shape_of(cache.state[0]), shape_of(part))
    );
  }
  const std::int64_t words = parts[0].shape[3];
  const std::int64_t groups = parts[1].shape[3];
  const Tensor& last = parts.back();  // The scales if there are no biases.
  const bool bytes = parts[1].dtype == DType::kUInt8 && parts.size() == 2;
  require_data(
      parts[0].dtype == DType::kUInt32 &&
          (bytes ? has_byte_scales(group, bits) : group != 16 && is_float(parts[1].dtype)) &&
          last.dtype == parts[1].dtype && last.shape == parts[1].shape,
      cache,
      fmt::format(
          "parts of dtypes {}, {} and {} for {} bits in groups of {}, expected U32 and floats, or "
          "U32 and U8 without biases for 4 bits in 16, 4 in 32 and 8 in 32",
          dtype_name(parts[0].dtype),
          dtype_name(parts[1].dtype),
          parts.size() == 2 ? "none" : dtype_name(last.dtype),
          bits,
          group
      )
  );
  require_data(
      groups <= std::numeric_limits<std::int32_t>::max() / group &&
          words * 32 == groups * group * bits,
      cache,
      fmt::format("{} words of {} bits for {} groups of {}", words, bits, groups, group)
  );
}

// Checks keys and values as codes; group_size and bits are meta values `at` and `at` + 1. Returns
// the number of rows.
std::int64_t check_codes(const SerializedCache& cache, std::size_t at) {
  const std::int64_t group = integer(cache, at, "group_size");
  const std::int64_t bits = integer(cache, at + 1, "bits");
  require_data(
      has_byte_scales(group, bits) ||
          ((group == 32 || group == 64 || group == 128) && bits >= 2 && bits <= 8 && bits != 7),
      cache,
      fmt::format("{} bits in groups of {}", bits, group)
  );
  if (cache.state.empty()) {
    return 0;
  }
  const auto parts = std::span(cache.state);
  const std::size_t half = parts.size() / 2;
  const bool alike = (parts[1].dtype == DType::kUInt8) == (parts[half + 1].dtype == DType::kUInt8);
  require_data(
      alike,
      cache,
      fmt::format(
          "scales of dtypes {} and {}, expected floats or U8 for keys and values alike",
          dtype_name(parts[1].dtype),
          dtype_name(parts[half + 1].dtype)
      )
  );
  check_codes_of(cache, parts.first(half), group, static_cast<int>(bits));
  check_codes_of(cache, parts.last(half), group, static_cast<int>(bits));
  return cache.state[0].shape[kRowDimension];
}

void check_quantized(const SerializedCache& cache) {
  require_counts(cache, {0, 4, 6}, 3);
  const std::int64_t offset = integer(cache, 0, "offset");
  const std::int64_t rows = check_codes(cache, 1);
  require_data(offset == rows, cache, fmt::format("offset is {} with {} rows", offset, rows));
}

void check_quantized_rotating(const SerializedCache& cache) {
  require_counts(cache, {0, 4, 6}, 6);
  check_ring(cache, check_codes(cache, 4));
}

// Checks rows with per-row positions; returns their number.
std::int64_t check_batch_rows(const SerializedCache& cache) {
  const std::int64_t rows = check_rows(cache);
  for (std::size_t i : {2U, 3U}) {
    const Tensor& positions = cache.state[i];
    require_data(
        positions.dtype == DType::kInt32 && positions.shape.size() == 1 &&
            positions.shape[0] == cache.state[0].shape[0],
        cache,
        fmt::format(
            "{} of dtype {} and shape {}, expected I32 [{}]",
            i == 2 ? "offset" : "left_padding",
            dtype_name(positions.dtype),
            shape_of(positions),
            cache.state[0].shape[0]
        )
    );
  }
  return rows;
}

void check_batch(const SerializedCache& cache) {
  require_counts(cache, {0, 4}, 0);
  if (!cache.state.empty()) {
    check_batch_rows(cache);
  }
}

void check_batch_rotating(const SerializedCache& cache) {
  require_counts(cache, {0, 4}, 4);
  const std::int64_t max_size = integer(cache, 0, "max_size");
  const std::int64_t offset = integer(cache, 1, "offset");
  const std::int64_t idx = integer(cache, 2, "idx");
  const bool rotated = meta_bool(cache.meta[3], "BatchRotatingKVCache: rotated");
  const std::string values =
      fmt::format("max_size {}, offset {}, idx {}, rotated {}", max_size, offset, idx, rotated);
  require_data(max_size >= 1 && offset >= 0 && idx >= 0, cache, values);
  if (cache.state.empty()) {
    require_data(offset == 0 && idx == 0 && !rotated, cache, values + " without rows");
    return;
  }
  const std::int64_t rows = check_batch_rows(cache);
  require_data(
      idx <= rows && (!rotated || rows == max_size) && rows <= offset,
      cache,
      fmt::format("{} with {} rows", values, rows)
  );
}

void check_arrays(const SerializedCache& cache) {
  const SlotLayout layout = slot_layout(cache.meta, cache.state.size());
  std::optional<std::int64_t> batch;
  for (const Tensor& slot : cache.state) {
    const bool fits = !slot.shape.empty() && slot.shape.size() <= 8 &&
                      std::ranges::all_of(slot.shape, [](auto size) {
                        return size > 0 && size <= std::numeric_limits<std::int32_t>::max();
                      });
    require_data(fits, cache, fmt::format("a slot of shape {}", shape_of(slot)));
    require_data(
        batch.value_or(slot.shape[0]) == slot.shape[0],
        cache,
        fmt::format("slots of {} and {} rows", batch.value_or(0), slot.shape[0])
    );
    batch = slot.shape[0];
  }
  for (const auto* positions : {&layout.left_padding, &layout.lengths}) {
    if (positions->has_value() && batch) {
      require_data(
          std::cmp_equal((*positions)->size(), *batch),
          cache,
          fmt::format("{} positions for {} rows", (*positions)->size(), *batch)
      );
    }
  }
}

void check_any(SerializedCache cache, int nesting) {
  if (cache.kind == "KVCache") {
    require_counts(cache, {0, 2}, 0);
    if (!cache.state.empty()) {
      check_rows(cache);
    }
  } else if (cache.kind == "RotatingKVCache") {
    check_rotating(cache);
  } else if (cache.kind == "ChunkedKVCache") {
    check_chunked(cache);
  } else if (cache.kind == "QuantizedKVCache") {
    check_quantized(cache);
  } else if (cache.kind == "QuantizedRotatingKVCache") {
    check_quantized_rotating(cache);
  } else if (cache.kind == "BatchKVCache") {
    check_batch(cache);
  } else if (cache.kind == "BatchRotatingKVCache") {
    check_batch_rotating(cache);
  } else if (cache.kind == "ArraysCache" || cache.kind == "MambaCache") {
    check_arrays(cache);
  } else if (cache.kind == "CacheList") {
    require_data(
        nesting < kMaxCacheNesting, cache, fmt::format("nested deeper than {}", kMaxCacheNesting)
    );
    for (SerializedCache& child : split_cache_list(std::move(cache))) {
      check_any(std::move(child), nesting + 1);
    }
  } else {
    require_data(false, cache, "unknown kind");
  }
}

}  // namespace

void check_serialized(const SerializedCache& cache) {
  check_any(cache, 0);
}

}  // namespace saker::cache

// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cache classes of mlx-lm, for programs that compute attention themselves, and for files.
// docs/caches.md has examples. Our models run on saker::cache::LayerCache instead.
//
// Shapes: keys are [B, H_kv, S, D] and values [B, H_kv, S, D_v]. B counts batch rows, H_kv key-value
// heads and S cached rows; D and D_v are head dimensions. New rows are [B, H_kv, n, D] with n > 0;
// with B = 1 all batch rows share them. Rows lie in mlx-lm's physical order, rings included.
//
// Units: positions, offsets and sizes count rows, one per token. The first row has position 0.
//
// Dtypes: the first rows decide the dtype of the cache. Later rows are converted to it.
//
// Arrays are handles: copies share memory until one is written, and results of `update` never
// change. `state` and `meta_state` are the arrays and strings of cache/serialized.h.
//
// Errors: saker::Error with kInvalidArgument for a caller's values, kCorruptData for serialized
// values, kUnsupported for an operation that a class lacks. A failed member leaves the cache as
// before. Threading: one thread at a time; MLX's rules for arrays.

#include "saker/cache/attention_inputs.h"
#include "saker/cache/serialized.h"
#include "saker/kernels/mx.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace saker::caches {

using cache::KeyValues;
using cache::Mask;

// The next row's position, or one position per batch row: int32 [B].
using RopeOffset = std::variant<std::int64_t, mx::array>;

// Rows in the layout of mx::quantize, for groups of G elements with `bits` bits each.
struct QuantizedRows {
  mx::array weight;                 // uint32 [B, H_kv, S, D * bits / 32]
  mx::array scales;                 // [B, H_kv, S, D / G]
  std::optional<mx::array> biases;  // As scales; MLX's float formats have none.
};

// Keys and values of all rows that attention reads.
struct QuantizedKeyValues {
  QuantizedRows keys;
  QuantizedRows values;
};

// Says if a mask may be "causal" or has to be an array.
enum class MaskForm : std::uint8_t { kAny, kArray };

class CacheList;
class QuantizedCache;

// A cache whose batch rows have separate positions.
class BatchPositioned {
 public:
  // The next row's position for each batch row; below 0 inside of left padding.
  virtual const std::vector<int>& batch_offset() const = 0;

 protected:
  BatchPositioned() = default;
  BatchPositioned(const BatchPositioned&) = default;
  BatchPositioned& operator=(const BatchPositioned&) = default;
  ~BatchPositioned() = default;
};

// The cache of one layer.
class Cache {
 public:
  virtual ~Cache() = default;

  // The class name that files have, as cache::canonical_kind returns it.
  virtual std::string_view kind() const = 0;

  // The class of mlx-lm 0.32.2 that has this layout.
  virtual std::string_view reference_class_name() const { return kind(); }

  // Appends rows and returns all rows that attention reads, the new ones included. Throws
  // kInvalidArgument for rows of other heads or dimensions, and beyond position 2^31 - 1.
  virtual KeyValues update(const mx::array& keys, const mx::array& values) = 0;

  // The next row's position; in batch classes the number of rows held, padding included.
  virtual std::int64_t offset() const = 0;

  // The offsets of `as_batch_positioned`, else `offset`.
  RopeOffset rope_offset() const;

  // Maximum number of rows that stay; none if unbounded.
  virtual std::optional<int> max_size() const { return std::nullopt; }

  // The valid rows, and positions of batch rows; empty without rows.
  virtual std::vector<mx::array> state() const = 0;

  // Number of arrays in `state`.
  std::size_t state_count() const { return state().size(); }

  // Appends the state.
  void state_into(std::vector<mx::array>& arrays) const;
  // Sets the state or the meta values alone, for callers that set both. Unlike `from_serialized`
  // they do not see if the two contradict each other.
  virtual void set_state(std::vector<mx::array> arrays) = 0;

  // Bounds and positions as text; empty for classes without any.
  virtual std::vector<std::string> meta_state() const { return {}; }

  // Appends the meta values.
  void meta_state_into(std::vector<std::string>& values) const;
  // Sets the meta values alone. Throws kCorruptData if they are not this class's.
  virtual void set_meta_state(const std::vector<std::string>& meta);
  // Sets both or neither, after a check of all values. Throws kCorruptData.
  void from_serialized(std::vector<mx::array> arrays, const std::vector<std::string>& meta);

  // Evaluates the cache's own arrays.
  virtual void materialize() = 0;

  // True if `trim` can drop rows now.
  virtual bool is_trimmable() const { return false; }

  // Drops up to `count` of the last rows; returns how many.
  virtual int trim(int /*count*/) { return 0; }

  // The mask of n > 0 new rows over the rows that `update` will return. Call it before `update`.
  // With a window, a row sees itself and the window - 1 rows before it; else all earlier rows.
  virtual Mask make_mask(
      int n, std::optional<int> window = std::nullopt, MaskForm form = MaskForm::kAny
  ) const = 0;

  // Bytes of the allocated rows, used or not.
  virtual std::size_t nbytes() const = 0;
  // True if no rows were ever appended or set.
  virtual bool is_empty() const = 0;
  // An independent cache of the same rows.
  virtual std::unique_ptr<Cache> copy() const = 0;

  // This cache as one of these types; null if it has another. The pointer lives as long as the
  // cache.
  QuantizedCache* as_quantized();
  // As above, not to be changed.
  const QuantizedCache* as_quantized() const;
  // As above, for caches that know each sequence's position.
  const BatchPositioned* as_batch_positioned() const;
  // As above, for lists of caches.
  CacheList* as_cache_list();
  // As above, not to be changed.
  const CacheList* as_cache_list() const;

 protected:
  Cache() = default;
  Cache(const Cache&) = default;
  Cache& operator=(const Cache&) = default;

 private:
  // Takes over all members of a cache of this class.
  virtual void become(Cache& other) = 0;
};

// A cache of any class, by its name here or in other runtimes (cache::canonical_kind). An offset
// beyond the rows of a quantized cache is reduced to their number. Throws kUnsupported for other
// names, kCorruptData for values that do not belong together.
std::unique_ptr<Cache> from_state(
    std::string_view kind, std::vector<mx::array> arrays, std::vector<std::string> meta
);
// As above, from plain values.
std::unique_ptr<Cache> from_state(cache::SerializedCache values);
// The cache as plain values. Evaluates its arrays and shares their memory.
cache::SerializedCache to_serialized(const Cache& cache);

}  // namespace saker::caches

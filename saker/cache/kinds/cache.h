// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cache kinds of mlx-lm, for programs that compute attention themselves, and for files. Arrays
// are [B, H_kv, S, D] in mlx-lm's physical order, rings included. Our models run on
// saker::cache::LayerCache instead.
//
// `state` and `meta_state` are the arrays and strings of cache/serialized.h. Arrays are handles:
// copies share memory until one is written, and results of `update` never change. A failed member
// leaves the cache as before. Errors: kInvalidArgument for a caller's values, kCorruptData for
// serialized values, kUnsupported for what a kind cannot do. Threading: one thread at a time, MLX's
// rules.

#include "saker/cache/layer_cache.h"
#include "saker/cache/window.h"
#include "saker/kernels/mx.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace saker::cache::kinds {

// The next row's position, or one per batch row: int32 [B].
using RopeOffset = std::variant<std::int64_t, mx::array>;

// Weight, scales and biases of quantized rows; some formats have no biases.
struct QuantizedRows {
  mx::array weight;
  mx::array scales;
  std::optional<mx::array> biases;
};

// Rows that attention reads, as codes.
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

// One layer's cache of any kind.
class Cache {
 public:
  virtual ~Cache() = default;

  // The canonical name of canonical_kind().
  virtual std::string_view kind() const = 0;

  // The class of mlx-lm 0.32.2 that has this layout.
  virtual std::string_view reference_class_name() const { return kind(); }

  // Appends rows and returns the rows that attention reads.
  virtual KeyValues update(const mx::array& keys, const mx::array& values) = 0;

  // The next row's position.
  virtual std::int64_t offset() const = 0;

  // The offsets of `as_batch_positioned`, else `offset`.
  RopeOffset rope_offset() const;

  // The bound of the rows that it keeps; none: no bound.
  virtual std::optional<int> max_size() const { return std::nullopt; }

  // The arrays that a file holds.
  virtual std::vector<mx::array> state() const = 0;

  // Number of arrays in `state`.
  std::size_t state_count() const { return state().size(); }

  // Appends the state.
  void state_into(std::vector<mx::array>& arrays) const;
  // Sets the state or the meta values alone, for callers that set both. Unlike `from_serialized`
  // they do not see if the two contradict each other.
  virtual void set_state(std::vector<mx::array> arrays) = 0;

  // The strings that a file holds.
  virtual std::vector<std::string> meta_state() const { return {}; }

  // Appends the meta values.
  void meta_state_into(std::vector<std::string>& values) const;
  // Sets the meta values alone, as `set_state`.
  virtual void set_meta_state(const std::vector<std::string>& meta);
  // Sets both or neither.
  void from_serialized(std::vector<mx::array> arrays, const std::vector<std::string>& meta);

  // Evaluates the cache's own arrays.
  virtual void materialize() = 0;

  // True if `trim` can drop rows now.
  virtual bool is_trimmable() const { return false; }

  // Drops the last rows, at most `count`; returns how many.
  virtual int trim(int /*count*/) { return 0; }

  // For n new rows, before they are appended. Without a window all earlier rows are seen.
  virtual Mask make_mask(
      int n, std::optional<int> window = std::nullopt, MaskForm form = MaskForm::kAny
  ) const = 0;

  virtual std::size_t nbytes() const = 0;  // Allocated rows, used or not.
  // True if it holds no rows.
  virtual bool is_empty() const = 0;
  // An independent cache with the same rows.
  virtual std::unique_ptr<Cache> copy() const = 0;

  // This cache as one of these types; null if it has another. The pointer lives as long as the
  // cache.
  QuantizedCache* as_quantized();
  // As above.
  const QuantizedCache* as_quantized() const;
  // As above.
  const BatchPositioned* as_batch_positioned() const;
  // As above.
  CacheList* as_cache_list();
  // As above.
  const CacheList* as_cache_list() const;

 protected:
  Cache() = default;
  Cache(const Cache&) = default;
  Cache& operator=(const Cache&) = default;

 private:
  // Takes over all members of a cache of this class.
  virtual void become(Cache& other) = 0;
};

// A cache of any kind, by its name here or in other runtimes. An offset beyond the rows of a
// quantized cache is reduced to their number.
std::unique_ptr<Cache> from_state(
    std::string_view kind, std::vector<mx::array> arrays, std::vector<std::string> meta
);

// One cache per layer: with a window, a ring of `window` rows that keeps the first
// kRotatingDefaultKeep; else all rows. A window of 0 or less counts as 0: such a ring takes no rows
// until `from_serialized` sets its size. Models whose layers differ make their own
// (models::Model::make_cache).
std::vector<std::unique_ptr<Cache>> make_prompt_cache(int layers, std::optional<int> window);

}  // namespace saker::cache::kinds

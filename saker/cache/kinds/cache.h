// SPDX-License-Identifier: Apache-2.0
#pragma once

// The cache kinds of mlx-lm for programs that compute attention themselves, and for files: arrays
// [B, H_kv, S, D] in mlx-lm's order, rings physically. The caches that our models run on are
// saker::cache::LayerCache.
//
// `state` and `meta_state` are the arrays and strings of cache/serialized.h. Arrays are handles:
// copies share memory until one is written, and what `update` returned stays as it was. A failed
// member leaves the cache as before; errors are kInvalidArgument for what a caller gives,
// kCorruptData for serialized values, kUnsupported for what a kind cannot do. Threading: one thread
// at a time, MLX's rules.

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

// The position of the next row, or one for each batch row: int32 [B].
using RopeOffset = std::variant<std::int64_t, mx::array>;

// Weight, scales and biases of quantized rows; some forms have no biases.
struct QuantizedRows {
  mx::array weight;
  mx::array scales;
  std::optional<mx::array> biases;
};

struct QuantizedKeyValues {
  QuantizedRows keys;
  QuantizedRows values;
};

// Whether a mask may be "causal", or has to be an array.
enum class MaskForm : std::uint8_t { kAny, kArray };

class CacheList;
class QuantizedCache;

// A cache whose batch rows are at positions of their own.
class BatchPositioned {
 public:
  // The position of each batch row's next row; below 0 inside of left padding.
  virtual const std::vector<int>& batch_offset() const = 0;

 protected:
  BatchPositioned() = default;
  BatchPositioned(const BatchPositioned&) = default;
  BatchPositioned& operator=(const BatchPositioned&) = default;
  ~BatchPositioned() = default;
};

class Cache {
 public:
  virtual ~Cache() = default;

  // The canonical name of canonical_kind().
  virtual std::string_view kind() const = 0;

  // The class of mlx-lm 0.32.2 that has this form.
  virtual std::string_view reference_class_name() const { return kind(); }

  // Appends rows and gives those that attention reads.
  virtual KeyValues update(const mx::array& keys, const mx::array& values) = 0;

  // The position of the next row.
  virtual std::int64_t offset() const = 0;

  // Those of `as_batch_positioned`, else `offset`.
  RopeOffset rope_offset() const;

  virtual std::optional<int> max_size() const { return std::nullopt; }

  virtual std::vector<mx::array> state() const = 0;

  // How many arrays `state` gives.
  std::size_t state_count() const { return state().size(); }

  // Appends the state.
  void state_into(std::vector<mx::array>& arrays) const;
  // Each alone, for callers that give both: unlike `from_serialized` they do not see what does not
  // go together.
  virtual void set_state(std::vector<mx::array> arrays) = 0;

  virtual std::vector<std::string> meta_state() const { return {}; }

  // Appends the meta values.
  void meta_state_into(std::vector<std::string>& values) const;
  virtual void set_meta_state(const std::vector<std::string>& meta);
  // Both or nothing.
  void from_serialized(std::vector<mx::array> arrays, const std::vector<std::string>& meta);

  // Evaluates the cache's own arrays.
  virtual void materialize() = 0;

  virtual bool is_trimmable() const { return false; }

  // Forgets the last rows, at most `count`; returns how many.
  virtual int trim(int /*count*/) { return 0; }

  // For n new rows, before they are appended. No window: all earlier rows are seen.
  virtual Mask make_mask(
      int n, std::optional<int> window = std::nullopt, MaskForm form = MaskForm::kAny
  ) const = 0;

  virtual std::size_t nbytes() const = 0;  // Of allocated rows, used or not.
  virtual bool is_empty() const = 0;
  virtual std::unique_ptr<Cache> copy() const = 0;

  // This cache as what it is beyond a cache; null where it is not. The pointer lives as long as
  // the cache.
  QuantizedCache* as_quantized();
  const QuantizedCache* as_quantized() const;
  const BatchPositioned* as_batch_positioned() const;
  CacheList* as_cache_list();
  const CacheList* as_cache_list() const;

 protected:
  Cache() = default;
  Cache(const Cache&) = default;
  Cache& operator=(const Cache&) = default;

 private:
  // Takes all from a cache of the same class.
  virtual void become(Cache& other) = 0;
};

// A cache of any kind, by its name here or in other runtimes. An offset beyond the rows of a
// quantized cache is brought back to them.
std::unique_ptr<Cache> from_state(
    std::string_view kind, std::vector<mx::array> arrays, std::vector<std::string> meta
);

// One cache per layer: a ring of `window` rows of which the first kRotatingDefaultKeep stay, or
// without a window all rows. A window of 0 or less counts as 0: such rings take no rows until
// `from_serialized` gives them a size. Models whose layers differ make their own
// (models::Model::make_cache).
std::vector<std::unique_ptr<Cache>> make_prompt_cache(int layers, std::optional<int> window);

}  // namespace saker::cache::kinds

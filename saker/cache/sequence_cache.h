// SPDX-License-Identifier: Apache-2.0
#pragma once

// The caches of one sequence, one per layer, which change together. Between passes all layers have
// the same offset.

#include "saker/cache/layer_cache.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace saker::cache {

class SequenceCache {
 public:
  explicit SequenceCache(std::vector<std::unique_ptr<LayerCache>> layers);

  int layer_count() const { return static_cast<int>(layers_.size()); }

  LayerCache& layer(int index) { return *layers_.at(static_cast<std::size_t>(index)); }

  const LayerCache& layer(int index) const { return *layers_.at(static_cast<std::size_t>(index)); }

  std::int64_t offset() const;
  std::size_t nbytes() const;
  // Over all layers, see LayerCache.
  std::size_t growth(std::int64_t row_count) const;
  std::size_t bytes_with(std::int64_t row_count, int step) const;
  bool can_trim(std::int64_t count) const;
  // Drops the last `count` rows of all layers. Returns false, with nothing changed, if a layer
  // can't.
  bool trim(std::int64_t count);
  // Drops all rows of all layers and frees memory that nothing else holds. REQUIRES: no open
  // transaction.
  void clear();
  SequenceCache copy() const;

  // The committed rows [from, offset) of all layers; none if a layer has none.
  std::optional<SequenceSnapshot> snapshot(std::int64_t from) const;
  // The largest position <= target that all layers can reach with these rows; -1: none.
  std::int64_t reach(const SequenceSnapshot& rows, std::int64_t target) const;
  // Takes all layers to `target`, see LayerCache::restore. Returns false, with nothing changed, if
  // one can't. Throws kCapacity without memory, also with nothing changed.
  bool restore(const SequenceSnapshot& rows, std::int64_t target);

  // True if `restore` of every layer can go anywhere, see LayerCache.
  bool restores_anywhere() const;

  void begin();
  // Keeps the first `count` rows written since `begin` in all layers; `count` is clamped to [0,
  // rows written]. Throws kInternal, with nothing changed, if a layer has fewer rows than another
  // or can't commit.
  void commit(std::int64_t count);
  void roll_back();

 private:
  std::vector<std::unique_ptr<LayerCache>> layers_;
  std::optional<std::int64_t> begun_;  // Offset when the open transaction began.
};

}  // namespace saker::cache

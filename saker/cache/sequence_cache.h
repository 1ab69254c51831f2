// SPDX-License-Identifier: Apache-2.0
#pragma once

// The caches of one sequence, one per layer, changed together. All layers have the same offset
// between passes.

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
  bool can_trim(std::int64_t count) const;
  // Forgets the last `count` rows of all layers, or of none: returns false and changes nothing when
  // a layer can't.
  bool trim(std::int64_t count);
  // Forgets all rows of all layers and gives back their memory, where nothing else holds it.
  // REQUIRES: no open transaction.
  void clear();
  SequenceCache copy() const;

  // The rows [from, offset) of all layers as they are committed; none where a layer has none.
  std::optional<SequenceSnapshot> snapshot(std::int64_t from) const;
  // The largest position <= target that all layers reach with these rows; -1: none.
  std::int64_t reach(const SequenceSnapshot& rows, std::int64_t target) const;
  // Takes all layers to `target`, see LayerCache::restore, or none: false, nothing changed. Throws
  // kCapacity without memory, and then nothing has changed either.
  bool restore(const SequenceSnapshot& rows, std::int64_t target);

  // Whether all layers' `restore` can go anywhere, see LayerCache.
  bool restores_anywhere() const;

  void begin();
  // Keeps the first `count` rows written since `begin` in all layers: all of them where `count` is
  // more, none where it is below 0. Throws kInternal, with nothing changed, when a layer has fewer
  // than another or can't.
  void commit(std::int64_t count);
  void roll_back();

 private:
  std::vector<std::unique_ptr<LayerCache>> layers_;
  std::optional<std::int64_t> begun_;  // Offset when the open transaction began.
};

}  // namespace saker::cache

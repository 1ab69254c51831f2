// SPDX-License-Identifier: Apache-2.0
#pragma once

// The caches of one sequence, one per layer, changed together. All layers have the same offset between passes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "saker/cache/layer_cache.h"

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
  // Forgets the last `count` rows of all layers, or of none: returns false and changes nothing when a layer can't.
  bool trim(std::int64_t count);
  SequenceCache copy() const;

  void begin();
  void commit(std::int64_t count);
  void roll_back();

 private:
  std::vector<std::unique_ptr<LayerCache>> layers_;
};

}  // namespace saker::cache

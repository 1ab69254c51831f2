// SPDX-License-Identifier: Apache-2.0
#pragma once

// Several caches of one layer, or lists of caches. Append rows to its children, not to it.

#include "saker/caches/cache.h"

#include <memory>
#include <vector>

namespace saker::caches {

// Several caches of one layer, for layers that need more than one.
class CacheList final : public Cache {
 public:
  // REQUIRES: no null pointer.
  explicit CacheList(std::vector<std::shared_ptr<Cache>> children)
      : children_(std::move(children)) {}

  // `copy` copies the children, too.
  CacheList(const CacheList&) = delete;
  CacheList& operator=(const CacheList&) = delete;

  std::string_view kind() const override { return "CacheList"; }

  const std::vector<std::shared_ptr<Cache>>& children() const { return children_; }

  // Throws std::out_of_range.
  Cache& operator[](std::size_t index) { return *children_.at(index); }

  // As above, not to be changed.
  const Cache& operator[](std::size_t index) const { return *children_.at(index); }

  // Throw kUnsupported: call them on a child.
  KeyValues update(const mx::array& keys, const mx::array& values) override;
  Mask make_mask(int n, std::optional<int> window = std::nullopt, MaskForm form = MaskForm::kAny)
      const override;
  void set_meta_state(const std::vector<std::string>& meta) override;

  // The largest offset of the children.
  std::int64_t offset() const override;
  std::vector<mx::array> state() const override;
  // Each child takes as many arrays as its state has.
  void set_state(std::vector<mx::array> arrays) override;
  std::vector<std::string> meta_state() const override;
  void materialize() override;
  bool is_trimmable() const override;
  // Trims all children or none; returns the last one's count.
  int trim(int count) override;
  std::size_t nbytes() const override;
  bool is_empty() const override;
  std::unique_ptr<Cache> copy() const override;

 private:
  void become(Cache& other) override;

  std::vector<std::shared_ptr<Cache>> children_;
};

}  // namespace saker::caches

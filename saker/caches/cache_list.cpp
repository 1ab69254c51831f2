// SPDX-License-Identifier: Apache-2.0
#include "saker/caches/cache_list.h"

#include "saker/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

namespace saker::caches {

KeyValues CacheList::update(const mx::array& /*keys*/, const mx::array& /*values*/) {
  throw Error(ErrorCode::kUnsupported, "[CacheList] rows go to its children");
}

Mask CacheList::make_mask(
    int /*n*/, std::optional<int> /*window*/, MaskForm /*form*/
) const {
  throw Error(ErrorCode::kUnsupported, "[CacheList] masks come from its children");
}

void CacheList::set_meta_state(const std::vector<std::string>& /*meta*/) {
  throw Error(ErrorCode::kUnsupported, "[CacheList] meta values go with a state: from_serialized");
}

std::int64_t CacheList::offset() const {
  std::int64_t offset = 0;
  for (const auto& child : children_) {
    offset = std::max(offset, child->offset());
  }
  return offset;
}

std::vector<mx::array> CacheList::state() const {
  std::vector<mx::array> arrays;
  for (const auto& child : children_) {
    child->state_into(arrays);
  }
  return arrays;
}

void CacheList::set_state(std::vector<mx::array> arrays) {
  // Sets copies first, so a child's failure changes no other child.
  std::vector<std::shared_ptr<Cache>> fresh;
  auto next = std::make_move_iterator(arrays.begin());
  std::size_t left = arrays.size();
  for (const auto& child : children_) {
    const std::size_t count = child->state_count();
    require(
        count <= left,
        ErrorCode::kCorruptData,
        "[CacheList] {} arrays, expected {}",
        arrays.size(),
        state_count()
    );
    fresh.push_back(child->copy());
    fresh.back()->set_state({next, next + static_cast<std::ptrdiff_t>(count)});
    next += static_cast<std::ptrdiff_t>(count);
    left -= count;
  }
  require(left == 0, ErrorCode::kCorruptData, "[CacheList] {} arrays too many", left);
  children_ = std::move(fresh);
}

std::vector<std::string> CacheList::meta_state() const {
  std::vector<std::string> all = {fmt::to_string(children_.size())};
  for (const auto& child : children_) {
    all.emplace_back(child->kind());
    all.push_back(fmt::to_string(child->state_count()));
    const std::size_t count_at = all.size();
    all.emplace_back();
    child->meta_state_into(all);
    all[count_at] = fmt::to_string(all.size() - count_at - 1);
  }
  return all;
}

void CacheList::materialize() {
  for (const auto& child : children_) {
    child->materialize();
  }
}

bool CacheList::is_trimmable() const {
  return std::ranges::all_of(children_, [](const auto& child) { return child->is_trimmable(); });
}

int CacheList::trim(int count) {
  int trimmed = 0;
  if (is_trimmable()) {
    for (const auto& child : children_) {
      trimmed = child->trim(count);
    }
  }
  return trimmed;
}

std::size_t CacheList::nbytes() const {
  std::size_t total = 0;
  for (const auto& child : children_) {
    total += child->nbytes();
  }
  return total;
}

bool CacheList::is_empty() const {
  return children_.empty() || children_.front()->is_empty();
}

std::unique_ptr<Cache> CacheList::copy() const {
  std::vector<std::shared_ptr<Cache>> children;
  children.reserve(children_.size());
  for (const auto& child : children_) {
    children.push_back(child->copy());
  }
  return std::make_unique<CacheList>(std::move(children));
}

void CacheList::become(Cache& other) {
  children_ = std::move(dynamic_cast<CacheList&>(other).children_);
}

}  // namespace saker::caches

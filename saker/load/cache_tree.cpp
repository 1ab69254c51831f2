// SPDX-License-Identifier: Apache-2.0
#include "saker/load/cache_tree.h"

#include "saker/base/error.h"
#include "saker/cache/serialized.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::load {
namespace {

// Each nested list takes two indices, the leaves of the deepest one a few more.
constexpr std::size_t kMaxPath = 2 * static_cast<std::size_t>(cache::kMaxCacheNesting) + 8;

using Leaf = std::pair<std::vector<std::size_t>, CacheNode>;

// The node of sorted leaves whose first `depth` indices are equal.
CacheNode make_node(std::span<Leaf> leaves, std::size_t depth, std::string_view what) {
  if (leaves.size() == 1 && leaves.front().first.size() == depth) {
    return std::move(leaves.front().second);
  }
  CacheNode::List list;
  while (!leaves.empty()) {
    const auto& path = leaves.front().first;
    require(
        path.size() > depth && path[depth] == list.size(),
        ErrorCode::kCorruptData,
        "{}: {} does not follow {} values of its list",
        what,
        fmt::join(path, "."),
        list.size()
    );
    const auto end = std::ranges::find_if(leaves, [&](const Leaf& leaf) {
      return leaf.first.size() <= depth || leaf.first[depth] != list.size();
    });
    const auto group = static_cast<std::size_t>(end - leaves.begin());
    list.push_back(make_node(leaves.first(group), depth + 1, what));
    leaves = leaves.subspan(group);
  }
  return {std::move(list)};
}

}  // namespace

std::optional<std::vector<std::size_t>> parse_path(std::string_view path) {
  std::vector<std::size_t> indices;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    std::size_t index = 0;
    const char* const last = path.data() + end;
    const auto [stop, error] = std::from_chars(path.data() + begin, last, index);
    if (error != std::errc() || stop != last || indices.size() == kMaxPath) {
      return std::nullopt;
    }
    indices.push_back(index);
    begin = end + 1;
  }
  return indices;
}

CacheNode::List make_tree(std::vector<Leaf> leaves, std::size_t count, std::string_view what) {
  std::ranges::sort(leaves, {}, &Leaf::first);
  CacheNode::List list(count);
  const std::span<Leaf> all(leaves);
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t top = all[begin].first.front();
    require(
        top < count,
        ErrorCode::kCorruptData,
        "{}: {} is beyond the {} layers",
        what,
        fmt::join(all[begin].first, "."),
        count
    );
    std::size_t end = begin;
    while (end < all.size() && all[end].first.front() == top) {
      ++end;
    }
    list[top] = make_node(all.subspan(begin, end - begin), 1, what);
    begin = end;
  }
  return list;
}

}  // namespace saker::load

// SPDX-License-Identifier: Apache-2.0
#pragma once

// The nested values of a prompt-cache file: leaves whose paths, such as "3.0.1", are list indices.
// Lists must be dense, without missing indices.

#include "saker/base/tensor.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace saker::load {

struct CacheNode {
  using List = std::vector<CacheNode>;
  using None = std::monostate;

  std::variant<None, std::int64_t, bool, std::string, Tensor, List> value;

  bool is_none() const { return std::holds_alternative<None>(value); }

  const List* list() const { return std::get_if<List>(&value); }

  const Tensor* tensor() const { return std::get_if<Tensor>(&value); }

  const std::string* text() const { return std::get_if<std::string>(&value); }
};

// "3.0.1" as indices; empty for other text and for paths deeper than any cache.
std::optional<std::vector<std::size_t>> parse_path(std::string_view path);

// Builds the lists that hold these leaves. The top list has `count` entries; missing ones are None.
// Throws kCorruptData, beginning with `what`, for indices of `count` and above, gaps below the top,
// and a leaf on the path to another one.
CacheNode::List make_tree(
    std::vector<std::pair<std::vector<std::size_t>, CacheNode>> leaves,
    std::size_t count,
    std::string_view what
);

}  // namespace saker::load

// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts one layer of a prompt-cache file between the nested values of a file format and its
// serialized form. All functions throw kCorruptData, and kUnsupported for unknown classes. Messages
// do not name the layer.

#include "saker/cache/serialized.h"
#include "saker/load/cache_tree.h"

#include <string>
#include <string_view>

namespace saker::load {

// The format of mlx-lm 0.32.2: `state` is the class's state tuple.
cache::SerializedCache from_current(std::string_view class_name, const CacheNode& state);

// The format of mlx-lm before 0.32.1, mlx-swift and mlxrs: flat or nested arrays beside meta
// strings.
cache::SerializedCache from_classic(
    std::string_view class_name, const CacheNode& state, const CacheNode& meta
);

// The class that mlx-lm 0.32.2 uses for a kind; it has no MambaCache any more.
std::string_view current_class(std::string_view kind);

// REQUIRES: `serialized` passes `check_serialized`.
CacheNode to_current(const cache::SerializedCache& serialized);

}  // namespace saker::load

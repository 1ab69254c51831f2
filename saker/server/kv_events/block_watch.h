// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns what a prefix cache says about its rows into whole blocks of tokens that come and go, each
// told once. A block's hash is that of its tokens, of all blocks before it and of the key of its
// rows. Threading: one thread, the engine's.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace saker::server::kv_events {

inline constexpr std::int64_t kBlockTokens = 64;  // A page of the cache.

struct BlockChange {
  enum class What : std::uint8_t { kStored, kRemoved, kCleared };

  What what = What::kCleared;                // All blocks are gone.
  std::vector<std::uint64_t> hashes = {};    // Stored ones follow each other.
  std::optional<std::uint64_t> parent = {};  // The block before stored ones; none: they begin.
  std::vector<std::int32_t> tokens = {};     // For stored ones.
};

class BlockWatch {
 public:
  using Report = std::function<void(BlockChange change)>;

  explicit BlockWatch(Report report);

  // As EngineOptions::on_prefix_rows.
  void rows(std::string_view key, std::span<const std::int32_t> tokens, std::int64_t held);

 private:
  void store(std::span<const std::int32_t> tokens, std::span<const std::uint64_t> hashes);
  void remove(std::span<const std::uint64_t> hashes);

  Report report_;
  std::unordered_set<std::uint64_t> held_;
};

}  // namespace saker::server::kv_events

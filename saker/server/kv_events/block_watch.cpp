// SPDX-License-Identifier: Apache-2.0
#include "saker/server/kv_events/block_watch.h"

#include "saker/base/blake2b.h"
#include "saker/engine/engine.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace saker::server::kv_events {
namespace {

using TokenSpan = std::span<const std::int32_t>;

constexpr auto kBlock = static_cast<std::size_t>(kBlockTokens);

std::uint64_t first_bits(const Blake2b& hash) {
  constexpr std::size_t kDigits = 16;
  constexpr int kHexadecimal = 16;
  return std::stoull(hash.hex().substr(0, kDigits), nullptr, kHexadecimal);
}

std::vector<std::uint64_t> block_hashes(std::string_view key, TokenSpan tokens) {
  Blake2b of_key;
  of_key.add(key);
  std::uint64_t last = first_bits(of_key);
  std::vector<std::uint64_t> hashes;
  for (std::size_t at = 0; at + kBlock <= tokens.size(); at += kBlock) {
    Blake2b hash;
    hash.add(std::as_bytes(std::span(&last, 1)));
    hash.add(std::as_bytes(tokens.subspan(at, kBlock)));
    last = first_bits(hash);
    hashes.push_back(last);
  }
  return hashes;
}

}  // namespace

BlockWatch::BlockWatch(Report report) : report_(std::move(report)) {}

void BlockWatch::rows(std::string_view key, TokenSpan tokens, std::int64_t held) {
  if (tokens.empty()) {
    held_.clear();
    return report_({});
  }
  if (!key.ends_with(engine::kBaseRows)) {
    return;
  }
  const std::vector<std::uint64_t> hashes = block_hashes(key, tokens);
  const auto whole = static_cast<std::size_t>(held / kBlockTokens);
  store(tokens, std::span(hashes).first(std::min(whole, hashes.size())));
  remove(std::span(hashes).subspan(std::min(whole, hashes.size())));
}

void BlockWatch::store(TokenSpan tokens, std::span<const std::uint64_t> hashes) {
  // Rows leave from the end on, so that the held blocks are the first.
  std::size_t known = 0;
  while (known < hashes.size() && held_.contains(hashes[known])) {
    ++known;
  }
  if (known == hashes.size()) {
    return;
  }
  const auto fresh = hashes.subspan(known);
  const TokenSpan stored = tokens.subspan(known * kBlock, fresh.size() * kBlock);
  BlockChange change{
      .what = BlockChange::What::kStored,
      .hashes = {fresh.begin(), fresh.end()},
      .tokens = {stored.begin(), stored.end()}
  };
  if (known > 0) {
    change.parent = hashes[known - 1];
  }
  held_.insert(fresh.begin(), fresh.end());
  report_(std::move(change));
}

void BlockWatch::remove(std::span<const std::uint64_t> hashes) {
  BlockChange change{.what = BlockChange::What::kRemoved};
  for (const std::uint64_t hash : hashes) {
    if (held_.erase(hash) > 0) {
      change.hashes.push_back(hash);
    }
  }
  if (!change.hashes.empty()) {
    report_(std::move(change));
  }
}

}  // namespace saker::server::kv_events

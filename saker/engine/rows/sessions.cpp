// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/rows/sessions.h"

#include "saker/base/error.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace saker::engine {
namespace {

// Trims the cache, whose rows belong to `tokens`, to the common prefix with `prompt`. Returns false
// if no row is left. One token is left to run, since its row gives the first logits.
bool keep_prefix(
    std::optional<cache::SequenceCache>& cache,
    std::span<const std::int32_t> tokens,
    std::span<const std::int32_t> prompt
) {
  if (!cache || prompt.empty()) {
    return false;
  }
  const auto limit = std::min(tokens.size(), prompt.size() - 1);
  const auto [end, ignored] = std::ranges::mismatch(tokens.first(limit), prompt);
  const auto rows = static_cast<std::int64_t>(end - tokens.begin());
  const std::int64_t surplus = cache->offset() - rows;
  return rows > 0 && (surplus <= 0 || cache->trim(surplus));
}

}  // namespace

Sessions::Place Sessions::place_for(std::uint64_t id) {
  Place place;
  place.try_emplace(id);
  return place;
}

void Sessions::open(Place place) noexcept {
  sessions_.merge(place);
}

void Sessions::close(std::uint64_t id) {
  sessions_.erase(id);
}

std::optional<cache::SequenceCache> Sessions::take(
    std::uint64_t id,
    std::span<const std::int32_t> prompt,
    const models::CacheOptions& options,
    const std::string& adapter
) {
  const auto found = sessions_.find(id);
  require(found != sessions_.end(), ErrorCode::kInvalidArgument, "session {} is not open", id);
  Session& session = found->second;
  require(
      !session.busy, ErrorCode::kInvalidArgument, "session {} is still answering a request", id
  );
  std::optional<cache::SequenceCache> cache = std::exchange(session.cache, std::nullopt);
  const std::vector<std::int32_t> tokens = std::exchange(session.tokens, {});
  const models::CacheOptions old_options = std::exchange(session.options, options);
  const std::string old_adapter = std::exchange(session.adapter, adapter);
  if (old_options != options || old_adapter != adapter || !keep_prefix(cache, tokens, prompt)) {
    cache.reset();
  }
  session.busy = true;
  return cache;
}

void Sessions::give_back(
    std::uint64_t id, std::vector<std::int32_t> context, std::optional<cache::SequenceCache> cache
) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) {
    return;
  }
  Session& session = found->second;
  session.busy = false;
  if (cache && cache->offset() <= static_cast<std::int64_t>(context.size())) {
    context.resize(static_cast<std::size_t>(cache->offset()));
    session.tokens = std::move(context);
    session.cache = std::move(cache);
    session.used = ++uses_;
  }
}

bool Sessions::give_way() {
  Session* oldest = nullptr;
  for (auto& [id, session] : sessions_) {
    if (session.cache && (oldest == nullptr || session.used < oldest->used)) {
      oldest = &session;
    }
  }
  if (oldest == nullptr) {
    return false;
  }
  oldest->cache.reset();
  oldest->tokens.clear();
  return true;
}

}  // namespace saker::engine

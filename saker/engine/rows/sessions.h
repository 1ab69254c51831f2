// SPDX-License-Identifier: Apache-2.0
#pragma once

// Caches of conversations between requests. A prompt that continues a session runs only its new
// tokens. The cache is cut to the longest common prefix, or dropped if a layer can't go back.
// Threading: the engine's thread.

#include "saker/cache/sequence_cache.h"
#include "saker/models/model.h"

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace saker::engine {

class Sessions {
  struct Session {
    std::vector<std::int32_t> tokens;  // One per row.
    std::optional<cache::SequenceCache> cache;
    models::CacheOptions options;
    std::string adapter;
    bool busy = false;
    std::uint64_t used = 0;  // Time of the last use, counted in uses.
  };

 public:
  // A closed session. Any thread may allocate it, so that `open` cannot fail.
  using Place = std::map<std::uint64_t, Session>;
  static Place place_for(std::uint64_t id);

  void open(Place place) noexcept;
  // Frees the rows; if a request is using them, `give_back` frees them.
  void close(std::uint64_t id);

  // Takes the cache out for one request. None if no row can be used, or if it was made with other
  // options or another adapter (see nn::adapter_identity). It holds fewer rows than the prompt has
  // tokens. Throws kInvalidArgument for an unknown session and while the session's last request
  // still runs.
  std::optional<cache::SequenceCache> take(
      std::uint64_t id,
      std::span<const std::int32_t> prompt,
      const models::CacheOptions& options,
      const std::string& adapter = {}
  );
  // Ends the use. `context` starts with the cached rows' tokens.
  void give_back(
      std::uint64_t id, std::vector<std::int32_t> context, std::optional<cache::SequenceCache> cache
  );

  // Drops the rows of the session that was unused for longest; false if no session has some.
  bool give_way();

 private:
  Place sessions_;
  std::uint64_t uses_ = 0;
};

}  // namespace saker::engine

// SPDX-License-Identifier: Apache-2.0
#include "saker/cache/speculation.h"

#include "saker/base/error.h"

#include <utility>

namespace saker::cache {

Speculation::Speculation(SequenceCache& live)
    : live_(live), start_(live.offset()), view_(live.copy()) {
  view_.begin();
}

void Speculation::commit(std::int64_t count) {
  require(
      live_.offset() == start_,
      ErrorCode::kInternal,
      "[Speculation] the cache has moved from {} to {}",
      start_,
      live_.offset()
  );
  view_.commit(count);
  live_ = std::move(view_);
}

}  // namespace saker::cache

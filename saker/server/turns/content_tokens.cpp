// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/content_tokens.h"

#include <utility>

namespace saker::server {

std::vector<engine::TokenEvent> ContentTokens::take(std::string_view piece) {
  if (std::exchange(after_other_, false)) {
    // A marker's tokens come first; those of the piece are the last ones.
    std::size_t first = pending_.size();
    std::size_t bytes = 0;
    while (first > 0 && bytes < piece.size()) {
      bytes += pending_[--first].bytes.size();
    }
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(first));
  }
  content_bytes_ += piece.size();
  std::vector<engine::TokenEvent> taken;
  while (!pending_.empty() && token_bytes_ + pending_.front().bytes.size() <= content_bytes_) {
    token_bytes_ += pending_.front().bytes.size();
    taken.push_back(std::move(pending_.front()));
    pending_.pop_front();
  }
  return taken;
}

void ContentTokens::drop() {
  pending_.clear();
  after_other_ = true;
  content_bytes_ = 0;
  token_bytes_ = 0;
}

}  // namespace saker::server

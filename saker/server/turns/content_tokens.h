// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tells which tokens of an answer are its content's. A token comes before the text that it makes
// final. Tokens of reasoning, of markers and of calls are in between. One thread.

#include "saker/engine/event.h"

#include <cstddef>
#include <deque>
#include <string_view>
#include <vector>

namespace saker::server {

class ContentTokens {
 public:
  void add(engine::TokenEvent token) { pending_.push_back(std::move(token)); }

  // The tokens of content that this piece completes.
  std::vector<engine::TokenEvent> take(std::string_view piece);

  // The tokens so far belong to something else.
  void drop();

 private:
  std::deque<engine::TokenEvent> pending_;
  bool after_other_ = false;       // The last tokens were not content's.
  std::size_t content_bytes_ = 0;  // Bytes of pieces since then,
  std::size_t token_bytes_ = 0;    // and of the tokens that were given out.
};

}  // namespace saker::server

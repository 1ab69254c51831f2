// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tells which tokens of an answer are those of its content: a token comes before the text that it
// makes final, and tokens of reasoning, of markers and of calls are in between. One thread.

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
  std::size_t content_bytes_ = 0;  // Of the pieces since then,
  std::size_t token_bytes_ = 0;    // and of the tokens that were given out.
};

}  // namespace saker::server

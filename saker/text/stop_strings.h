// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stop strings in a stream of text. The stream is cut before the stop string whose last byte comes
// first (of several that end there, the longest), so the cut does not depend on how the text was
// cut into pieces. Shown text never holds a part of a stop string that completes later; held back
// is only what may still become one. One Knuth-Morris-Pratt automaton per string: the work per byte
// is bounded by their number. One thread at a time.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace saker::text {

class StopMatcher {
 public:
  struct Result {
    std::string text;      // Safe to show.
    bool stopped = false;  // A stop string was met; the text before it is out, nothing is held.
  };

  // Throws kInvalidArgument for empty or invalid UTF-8 strings and for more than 1 MiB of them.
  explicit StopMatcher(std::vector<std::string> stops);

  // REQUIRES: not stopped yet.
  Result push(std::string_view piece);
  // The text that was held back; the matcher starts afresh.
  std::string flush();

 private:
  struct Automaton {
    std::string stop;
    std::vector<std::size_t> border;  // [i]: longest proper border of the first i + 1 bytes.
    std::size_t matched = 0;          // Bytes of `stop` that the stream's end matches.

    void advance(char byte);
  };

  std::vector<Automaton> automata_;
  std::string held_;
};

}  // namespace saker::text

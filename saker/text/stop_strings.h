// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds stop strings in a stream of text. The stream is cut before the stop string whose last byte
// comes first (the longest one if several end there). So the cut does not depend on how the text
// was cut into pieces. Shown text never holds a part of a stop string that completes later; only
// text that may still become one is held back.
//
// Each string has a Knuth-Morris-Pratt automaton: the work per byte is bounded by their number. One
// thread at a time.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace saker::text {

class StopMatcher {
 public:
  struct Result {
    std::string text = {};  // Safe to show.
    bool stopped = false;   // Met a stop string; `text` is all before it, nothing is held back.
    std::string stop = {};  // The one it met.
  };

  // Throws kInvalidArgument for empty strings, invalid UTF-8, and more than 1 MiB of strings.
  explicit StopMatcher(std::vector<std::string> stops);

  // REQUIRES: not stopped yet.
  Result push(std::string_view piece);
  // The text still held back; the matcher starts afresh.
  std::string flush();

 private:
  struct Automaton {
    std::string stop;
    std::vector<std::size_t> border;  // [i]: longest proper border of the first i + 1 bytes.
    std::size_t matched = 0;          // Bytes of `stop` that match the end of the stream.

    void advance(char byte);
  };

  std::vector<Automaton> automata_;
  std::string held_;
};

}  // namespace saker::text

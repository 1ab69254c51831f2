// SPDX-License-Identifier: Apache-2.0
#include "saker/text/stop_strings.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <algorithm>
#include <utility>

namespace saker::text {
namespace {

constexpr std::size_t kMaxStopBytes = std::size_t{1} << 20;

std::vector<std::size_t> borders(std::string_view text) {
  std::vector<std::size_t> border(text.size(), 0);
  for (std::size_t i = 1, length = 0; i < text.size(); ++i) {
    while (length > 0 && text[i] != text[length]) {
      length = border[length - 1];
    }
    length += text[i] == text[length] ? 1 : 0;
    border[i] = length;
  }
  return border;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops) {
  std::size_t bytes = 0;
  for (auto& stop : stops) {
    require(!stop.empty(), ErrorCode::kInvalidArgument, "a stop string is empty");
    require_utf8(stop, "a stop string");
    bytes += stop.size();
    std::vector<std::size_t> border = borders(stop);
    automata_.push_back({.stop = std::move(stop), .border = std::move(border)});
  }
  require(
      bytes <= kMaxStopBytes,
      ErrorCode::kInvalidArgument,
      "{} bytes of stop strings, at most {} expected",
      bytes,
      kMaxStopBytes
  );
}

void StopMatcher::Automaton::advance(char byte) {
  while (matched > 0 && byte != stop[matched]) {
    matched = border[matched - 1];
  }
  matched += byte == stop[matched] ? 1 : 0;
}

StopMatcher::Result StopMatcher::push(std::string_view piece) {
  for (std::size_t i = 0; i < piece.size(); ++i) {
    std::size_t longest = 0;
    std::string_view met;
    for (auto& automaton : automata_) {
      automaton.advance(piece[i]);
      if (automaton.matched == automaton.stop.size() && automaton.stop.size() > longest) {
        longest = automaton.stop.size();
        met = automaton.stop;
      }
    }
    if (longest > 0) {
      std::string text = flush();
      text.append(piece.substr(0, i + 1));
      text.resize(text.size() - longest);
      return {.text = std::move(text), .stopped = true, .stop = std::string(met)};
    }
  }
  std::size_t keep = 0;
  for (const auto& automaton : automata_) {
    keep = std::max(keep, automaton.matched);
  }
  std::string text = std::exchange(held_, {}).append(piece);
  held_ = text.substr(text.size() - keep);
  text.resize(text.size() - keep);
  return {.text = std::move(text)};
}

std::string StopMatcher::flush() {
  for (auto& automaton : automata_) {
    automaton.matched = 0;
  }
  return std::exchange(held_, {});
}

}  // namespace saker::text
